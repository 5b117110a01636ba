"""A contribution in transit: on disk before it is sent, deleted once the server has acknowledged it.

One upload may hold hours of training, and both sides may restart meanwhile. All attempts of a contribution use the same
idempotency key, so it counts once, however often it arrives.
"""

from __future__ import annotations

import json
import logging
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from ferret_core.contribution import SealedContribution
from ferret_core.protocol.buffers import Pieces
from ferret_core.protocol.digest import digest_stream
from ferret_core.protocol.resources.participants import Lease
from ferret_core.protocol.signatures import Signed, sign
from ferret_core.system.atomic_files import atomic_write, write_durably

log = logging.getLogger(__name__)


class Upload(NamedTuple):
    """A contribution's request without its bytes.

    ``seconds`` and ``loss`` describe the local update, ``size`` is in bytes. ``fence`` is None once the lease is
    lost: the upload waits until the same assignment is leased again. ``private``: it was made under a privacy budget.
    ``counted``: the site's limit of bytes already includes it. ``part_bytes`` is the lease's. A masked vector has the
    ``context`` of its secure sum.
    """

    assignment: str
    fence: int | None
    round: int
    key: str
    seconds: float
    loss: float | None
    digest: str
    size: int
    signature: str
    private: bool = False
    part_bytes: int | None = None
    context: str | None = None
    counted: bool = False

    @classmethod
    def of(
        cls, lease: Lease, sealed: SealedContribution, seconds: float, secret: str, *, private: bool = False
    ) -> Upload:
        """Creates an upload with a new idempotency key, signed with the participant's ``secret``."""
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
            size=sealed.size,
            signature=sign(secret, signed),
            private=private,
            part_bytes=lease.part_bytes,
            context=None if lease.sum is None else lease.sum.context,
        )


class Spool:
    """A folder with the unacknowledged upload: its contribution, and all else as JSON in a second file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "upload.json"
        self._contribution = folder / "contribution"

    def keep(self, upload: Upload, pieces: Pieces) -> None:
        """Stores the upload and its bytes durably, replacing any earlier one. Raises ``storage.full``."""
        for draft in self._folder.glob(".*"):  # left by a killed process
            draft.unlink()
        with atomic_write(self._contribution) as file:
            file.writelines(pieces)
        self.note(upload)

    def note(self, upload: Upload) -> None:
        """Stores changes of the upload, but not its bytes."""
        write_durably(self._path, json.dumps(upload._asdict()).encode())

    def waiting(self) -> Upload | None:
        """Returns the upload that must still be sent. None if it is missing or unreadable: it is trained again."""
        if not self._path.is_file():
            return None
        try:
            head: dict[str, Any] = json.loads(self._path.read_bytes())
            with self._contribution.open("rb") as file:
                if head["digest"] == digest_stream(file) and head["size"] == file.tell():
                    return Upload(**head)
        except (ValueError, KeyError, TypeError, FileNotFoundError):
            pass
        log.warning("%s is damaged: its contribution is made again", self._folder)
        self.clear()
        return None

    def read(self, offset: int, count: int) -> bytes:
        """Returns ``count`` bytes of the contribution from ``offset`` on, or as many as exist."""
        with self._contribution.open("rb") as file:
            file.seek(offset)
            return file.read(count)

    def clear(self) -> None:
        """Deletes the upload: it has arrived, or is not needed."""
        self._path.unlink(missing_ok=True)
        self._contribution.unlink(missing_ok=True)
