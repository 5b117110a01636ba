"""A large contribution arrives in parts, which grow into one file: whatever is killed, what is on the disk stays.

The file's length says how much has arrived. It is on the disk before the part is answered, and is named after the
assignment and the digest that the whole must have: equal digests are equal bytes, so an upload can be taken up again at
any length. A participant has one such file at a time. Nothing depends on what others have stored under the same digest.
An upload that is given up is collected like all that nothing refers to.
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
from ferret_api.limits.errors import TooMany
from ferret_api.participants import upload
from ferret_api.participants.upload import ExpectedUpload, ReceivedUpload, UploadResult
from ferret_core.protocol.errors import FerretError
from ferret_core.storage import FileKind, Storage, blob_location
from ferret_core.system.atomic_files import flush_folder, make_folder_durably, room_for
from ferret_core.system.failpoints import failpoint
from ferret_db.tables import Assignment

BUSY_SECONDS = 2.0
"""Until another request for the same upload may be done: it writes a part, or checks the whole."""
KEPT_AFTER = frozenset({"lease.lost"})
"""Refusals of the whole after which the same bytes may yet be taken; so they may where the service itself failed."""


class UploadPart(NamedTuple):
    """Where a part belongs: at ``offset`` of a contribution of ``length`` bytes."""

    offset: int
    length: int


def received_bytes(context: Context, expected: ExpectedUpload, fence: int, digest: str) -> int:
    """How many bytes of the contribution are on the disk, all of them once it has been accepted.

    Raises ``round.closed``, ``lease.lost``, ``contribution.duplicate`` and ``request.too_large`` as the parts would.
    """
    accepted = upload.already_accepted(expected, digest)
    growing = _Growing(context.storage, expected.assignment, digest)
    if accepted is not None:
        growing.drop()
        return accepted.answer.size
    upload.upload_size_limit(context, expected, fence)
    return growing.length()


def part_size_limit(context: Context, expected: ExpectedUpload, part: UploadPart, fence: int) -> int:
    """The most bytes that the part can have, before the first is read; raises as :func:`received_bytes`, and
    ``storage.full`` unless what is missing fits in."""
    most = upload.upload_size_limit(context, expected, fence)
    if part.length > most or part.offset > part.length:
        detail = f"a contribution to this assignment has at most {most} bytes, this one has {part.length}, and the part"
        raise FerretError("request.too_large", f"{detail} begins at {part.offset}: send what its algorithm sends")
    context.storage.require_room(part.length - part.offset)
    return min(context.settings.part_bytes, part.length - part.offset)


def receive_part(context: Context, part: UploadPart, received: ReceivedUpload) -> int | UploadResult:
    """How many bytes have arrived with the part that was ``received`` or, after the last, the result of the whole.

    Raises ``upload.offset`` where the part does not follow what has arrived, ``request.too_many`` where another request
    for the same upload is not done yet, and after the last part what a whole contribution is refused with.
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
    """Deletes what has arrived of the participants' uploads."""
    for participant_id in participant_ids:
        shutil.rmtree(storage.growing(participant_id), ignore_errors=True)


class _Growing:
    """The file of one upload: a draft until it is whole, and then one of the storage."""

    def __init__(self, storage: Storage, assignment: Assignment, digest: str) -> None:
        self._draft = storage.growing(f"{assignment.participant_id}/{assignment.id}-{digest}")
        self._moved = self._draft.with_suffix(".moved")  # a mark without content
        self._stored = storage.path(blob_location(FileKind.CONTRIBUTION, digest))

    @property
    def path(self) -> Path:
        """Where the bytes of this upload are: in the storage, if a process was killed just before the acceptance."""
        return self._stored if self._moved.exists() and not self._has_bytes() else self._draft

    def length(self) -> int:
        """Bytes that have arrived and are on the disk."""
        try:
            with self.path.open("rb") as file:
                os.fsync(file.fileno())  # who wrote them may have been killed before
                return os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return 0

    @contextmanager
    def held(self) -> Generator[BinaryIO]:
        """The draft; while the block runs no other request adds to it or checks it."""
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
                raise TooMany("another request for this upload is not done yet", BUSY_SECONDS) from error
            yield file

    def append(self, file: BinaryIO, offset: int, body: bytes | Path) -> int:
        """The length with the body, all of which is on the disk, or nothing of it."""
        have = self.length()
        if offset != have:
            message = f"{have} bytes have arrived; go on from there"
            raise FerretError.of_field("upload.offset", "Upload-Offset", offset, message)
        if body == b"":
            return have
        with room_for("a part of a contribution"):
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
        """Notes on disk that the block may move the whole upload. The successor of a killed process reads the note."""
        self._moved.touch()
        try:
            yield
        finally:
            if self._has_bytes():
                self._moved.unlink(missing_ok=True)

    def drop(self) -> None:
        """Forgets what has arrived."""
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
