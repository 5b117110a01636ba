"""Resumable uploads: the parts of a large contribution are appended to one file, which survives crashes.

The file's length is the number of bytes that have arrived. Each part is flushed to disk before its response. The file
name contains the assignment and the digest of the whole contribution. Equal digests mean equal bytes, so an upload can
resume at any length. A participant has one such file at a time, independent of files that others have stored under the
same digest. Garbage collection removes abandoned uploads.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ferret_api.context import Context
from ferret_api.limits.rate_limits import RateLimitExceeded
from ferret_api.participants import upload
from ferret_api.participants.upload import ExpectedUpload, ReceivedUpload, UploadResult
from ferret_core.protocol.errors import FerretError
from ferret_core.storage import FileKind, Storage, blob_location
from ferret_core.system.atomic_files import disk_full_as_error, flush_folder, make_folder_durably
from ferret_core.system.failpoints import failpoint
from ferret_db.tables import Assignment

BUSY_SECONDS = 2.0
"""Retry interval while another request for the same upload writes a part or checks the whole."""
KEPT_AFTER = frozenset({"lease.lost"})
"""Refusals after which the same bytes may still be accepted. The same holds for failures of the service (5xx)."""


class UploadPart(NamedTuple):
    """The position of a part: ``offset`` in a contribution of ``length`` bytes."""

    offset: int
    length: int


def received_bytes(context: Context, expected: ExpectedUpload, fence: int, digest: str) -> int:
    """How many bytes of the contribution are on the disk, all of them once it has been accepted.

    Raises ``round.closed``, ``lease.lost``, ``contribution.duplicate`` and ``request.too_large``, like the parts.
    """
    accepted = upload.already_accepted(expected, digest)
    growing = _Growing(context.storage, expected.assignment, digest)
    if accepted is not None:
        growing.drop()
        return accepted.answer.size
    upload.upload_size_limit(context, expected, fence)
    return growing.length()


def part_size_limit(context: Context, expected: ExpectedUpload, part: UploadPart, fence: int) -> int:
    """Returns the maximum size of the part, before its first byte is read.

    Raises the errors of :func:`received_bytes`, and ``storage.full`` unless the remaining bytes fit on the disk."""
    most = upload.upload_size_limit(context, expected, fence)
    if part.length > most or part.offset > part.length:
        detail = f"a contribution to this assignment has at most {most} bytes, this one has {part.length}, and the part"
        raise FerretError("request.too_large", f"{detail} begins at {part.offset}: send what its algorithm sends")
    context.storage.require_room(part.length - part.offset)
    return min(context.settings.part_bytes, part.length - part.offset)


def receive_part(context: Context, part: UploadPart, received: ReceivedUpload) -> int | UploadResult:
    """How many bytes have arrived with the part that was ``received`` or, after the last, the result of the whole.

    Raises ``upload.offset`` if the part does not begin at the current length, ``request.too_many`` while another
    request for the same upload is in progress, and after the last part the errors of a whole contribution.
    """
    growing = _Growing(context.storage, received.expected.assignment, received.digest or "")
    with growing.held() as file:
        length = growing.append(file, part.offset, received.body)
        if length < part.length:
            return length
        failpoint("parts.arrived")
        with growing.moving():
            (result,) = upload.accept_uploads(context, [received._replace(body=growing.path)])
        if isinstance(result, FerretError):
            if result.problem.status < 500 and result.code not in KEPT_AFTER:
                growing.drop()
            raise result
        growing.drop()
        return result


def forget(storage: Storage, participant_ids: Iterable[str]) -> None:
    """Deletes the participants' partial uploads."""
    for participant_id in participant_ids:
        shutil.rmtree(storage.growing(participant_id), ignore_errors=True)


class _Growing:
    """The file of one upload: a draft until it is complete, then a file in the storage."""

    def __init__(self, storage: Storage, assignment: Assignment, digest: str) -> None:
        self._draft = storage.growing(f"{assignment.participant_id}/{assignment.id}-{digest}")
        self._moved = self._draft.with_suffix(".moved")  # an empty marker file
        self._stored = storage.path(blob_location(FileKind.CONTRIBUTION, digest))

    @property
    def path(self) -> Path:
        """Path of the upload's bytes. It is in the storage if a process was killed just before the acceptance."""
        return self._stored if self._moved.exists() and not self._has_bytes() else self._draft

    def length(self) -> int:
        """Returns the number of bytes that are safely on disk."""
        try:
            with self.path.open("rb") as file:
                os.fsync(file.fileno())  # the writing process may have been killed before it flushed
                return os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return 0

    @contextmanager
    def held(self) -> Generator[BinaryIO]:
        """Opens the draft and locks it against other requests for the duration of the block."""
        folder = self._draft.parent
        make_folder_durably(folder)
        if not self._draft.exists():
            for other in folder.iterdir():
                if other != self._moved:
                    other.unlink(missing_ok=True)
        with self._draft.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RateLimitExceeded("another request for this upload is in progress", BUSY_SECONDS) from error
            yield file

    def append(self, file: BinaryIO, offset: int, body: bytes | Path) -> int:
        """Appends the body durably, all or nothing, and returns the new length."""
        have = self.length()
        if offset != have:
            message = f"{have} bytes have arrived; continue from there"
            raise FerretError.of_field("upload.offset", "Upload-Offset", offset, message)
        if body == b"":
            return have
        with disk_full_as_error("a part of a contribution"):
            try:
                _write(file, body)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(have)
                raise
        if have == 0:
            flush_folder(self._draft.parent)
        failpoint("parts.grown")
        return self.length()

    @contextmanager
    def moving(self) -> Generator[None]:
        """Marks on disk that the block may move the upload. The successor of a killed process reads the mark."""
        self._moved.touch()
        try:
            yield
        finally:
            if self._has_bytes():
                self._moved.unlink(missing_ok=True)

    def drop(self) -> None:
        """Deletes the partial upload."""
        self._draft.unlink(missing_ok=True)
        self._moved.unlink(missing_ok=True)

    def _has_bytes(self) -> bool:
        return self._draft.exists() and self._draft.stat().st_size > 0


def _write(file: BinaryIO, body: bytes | Path) -> None:
    if isinstance(body, bytes):
        file.write(body)
        return
    with body.open("rb") as part:
        shutil.copyfileobj(part, file, 1 << 20)
