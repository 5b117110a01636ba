"""A contribution on its way: on disk before it is sent, gone once the server has acknowledged it.

Hours of training may lie in one upload, and either end may be started again meanwhile. The key goes with the
contribution from the first attempt to the last, so that however often it arrives, it counts once.
"""

from __future__ import annotations

import json
import logging
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from ferret_core.durable import write_durably
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.signatures import Signed, sign
from ferret_core.sealed import Sealed
from ferret_sdk.schemas import Lease

log = logging.getLogger(__name__)


class Upload(NamedTuple):
    """A contribution with all that its request takes; ``seconds`` and ``loss`` are those of the local update.

    ``fence`` is None once the lease is lost: the upload waits until the same assignment is leased again. ``private``:
    it was made under a privacy budget.
    """

    assignment: str
    fence: int | None
    round: int
    key: str
    seconds: float
    loss: float | None
    digest: str
    blob: bytes
    private: bool = False
    signature: str | None = None

    @classmethod
    def of(
        cls, lease: Lease, sealed: Sealed, seconds: float, secret: str | None = None, *, private: bool = False
    ) -> Upload:
        """A new upload, under an idempotency key of its own, signed with the participant's ``secret`` if it has one."""
        meta = sealed.meta
        signed = Signed(meta.experiment, meta.round, meta.participant, meta.base_digest, lease.id, sealed.digest)
        return cls(
            assignment=lease.id,
            fence=lease.fence,
            round=lease.task.round,
            key=secrets.token_hex(16),
            seconds=seconds,
            loss=meta.metrics.get("train_loss"),
            digest=sealed.digest,
            blob=sealed.blob,
            private=private,
            signature=None if secret is None else sign(secret, signed),
        )


class Spool:
    """A folder of one file, the upload that was not acknowledged: a line of JSON, then the contribution."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "upload"

    def keep(self, upload: Upload) -> None:
        """Stores the upload durably, in place of any before it; ``storage.full`` if there is no room."""
        for draft in self._folder.glob(".*"):  # of a process that was killed
            draft.unlink()
        head = {name: value for name, value in upload._asdict().items() if name != "blob"}
        write_durably(self._path, json.dumps(head).encode() + b"\n" + upload.blob)

    def waiting(self) -> Upload | None:
        """The upload that still has to be sent; None if there is none, or it cannot be read: it is trained again."""
        if not self._path.is_file():
            return None
        line, _, blob = self._path.read_bytes().partition(b"\n")
        try:
            head: dict[str, Any] = json.loads(line)
            if head["digest"] == digest_bytes(blob):
                return Upload(**head, blob=blob)
        except (ValueError, KeyError, TypeError):
            pass
        log.warning("%s is damaged: its contribution is made again", self._path)
        self.clear()
        return None

    def clear(self) -> None:
        """Forgets the upload: it has arrived, or is not wanted any more."""
        self._path.unlink(missing_ok=True)
