"""The one admin token: made at first start, kept in a file that only its owner reads."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from api.settings import ApiSettings
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError

FILE_NAME = "admin.token"


class AdminToken(NamedTuple):
    """The token and what follows from it."""

    value: str

    @property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits that tell installations apart and give nothing of the token away."""
        return digest_bytes(self.value.encode())[:8]

    @property
    def cookie(self) -> str:
        """Name of the session cookie."""
        return f"ferret_{self.fingerprint}"

    @property
    def session(self) -> str:
        """Value of the session cookie: follows from the token, but is none."""
        return digest_bytes(f"ferret session {self.value}".encode())

    def is_token(self, candidate: str) -> bool:
        return hmac.compare_digest(candidate.encode(), self.value.encode())

    def is_session(self, candidate: str) -> bool:
        return hmac.compare_digest(candidate.encode(), self.session.encode())


def load(settings: ApiSettings) -> AdminToken:
    """The configured token, else the one in the home folder, which is made if it is not there."""
    if settings.admin_token is not None:
        return AdminToken(settings.admin_token)
    path = settings.home / FILE_NAME
    if not path.exists():
        _create(path, secrets.token_urlsafe(32))
    path.chmod(0o600)
    token = path.read_text().strip()
    if not token:
        raise FerretError("setup.missing", f"{path} is empty: remove it, and the next start makes a new token")
    return AdminToken(token)


def _create(path: Path, token: str) -> None:
    """Writes the file whole or not at all; of several processes that start at once, one wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{FILE_NAME}-{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileExistsError):  # another process was first: its token counts
        os.link(draft, path)
    draft.unlink()
