"""The admin token, generated at the first start and stored in a file that only its owner can read."""

from __future__ import annotations

import hmac
import secrets
from typing import NamedTuple

from ferret_api.settings import ApiSettings
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.system.atomic_files import create_durably

FILE_NAME = "admin.token"


class AdminToken(NamedTuple):
    """The token and values derived from it."""

    value: str

    @property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits that identify the installation and reveal nothing about the token."""
        return digest_bytes(self.value.encode())[:8]

    @property
    def cookie(self) -> str:
        """Name of the session cookie."""
        return f"ferret_{self.fingerprint}"

    @property
    def link_issuer(self) -> str:
        """Issuer of sign-in links. Changing the token invalidates all links."""
        return f"link:{self.fingerprint}"

    def is_token(self, candidate: str) -> bool:
        return hmac.compare_digest(candidate.encode(), self.value.encode())


def load(settings: ApiSettings) -> AdminToken:
    """Returns the configured token, else the one in the home folder, which is created if it is missing."""
    if settings.admin_token is not None:
        return AdminToken(settings.admin_token)
    path = settings.home / FILE_NAME
    if not path.exists():
        create_durably(path, f"{secrets.token_urlsafe(32)}\n".encode())  # if several processes start, one wins
    path.chmod(0o600)
    token = path.read_text().strip()
    if not token:
        raise FerretError("dependency.missing", f"{path} is empty: delete it, and the next start writes a new token")
    return AdminToken(token)
