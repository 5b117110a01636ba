"""Format of a backup: a tar file, packed by gzip, with the database, its referenced files that cannot be rebuilt, and
last the manifest with every digest.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from blake3 import blake3
from pydantic import Field, ValidationError

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import StrictModel
from ferret_db import migrate
from ferret_sdk.service.server_address import TOKEN_FILE

FORMAT: Literal[1] = 1
MANIFEST = "manifest.json"
DATABASE = "ferret.db"
STORAGE = "storage"


class Entry(StrictModel):
    """A file of the backup: its size in bytes and its BLAKE3."""

    size: int = Field(ge=0)
    digest: str


class Manifest(StrictModel):
    """The last member of every backup: all others by name; ``revision`` is the database's schema."""

    format: Literal[1]
    created_at: str
    revision: str
    files: dict[str, Entry]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())


class Digesting:
    """A stream that digests the bytes read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._hasher = blake3()
        self._size = 0

    def read(self, size: int = -1, /) -> bytes:
        data = self._stream.read(size)
        self._hasher.update(data)
        self._size += len(data)
        return data

    @property
    def entry(self) -> Entry:
        """Size and digest of the bytes read so far."""
        return Entry(size=self._size, digest=self._hasher.hexdigest())


MANIFEST_BYTES = 256 << 20
HEADER_BYTES = 64 << 10
"""Maximum size of a long name or a PAX header, which are read into memory."""
RESERVE_BYTES = 32 << 20
EXTENSIONS = {
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
}
KINDS = {tarfile.REGTYPE, tarfile.AREGTYPE, *EXTENSIONS}


UNREADABLE = (tarfile.TarError, EOFError, ValueError, gzip.BadGzipFile, zlib.error)
"""Errors of a damaged file, or of another kind of file."""


class Member(tarfile.TarInfo):
    """A regular file: any other kind is refused at its header, before its content is read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Member:
        found = super().frombuf(buf, encoding, errors)
        if found.type not in KINDS:
            raise tarfile.ReadError(f"{found.name!r} does not belong in a backup: it is not a regular file")
        if found.type in EXTENSIONS and found.size > HEADER_BYTES:
            raise tarfile.ReadError(f"it has a header of {found.size} bytes")
        return found


def survey(file: Path, folder: Path) -> Manifest:
    """Returns the manifest of ``file``, after checking every member against it and against the free space of
    ``folder``.

    A member is a regular file, stored in full, with a name that a backup may hold. Links and sparse files are refused,
    because their size costs nothing in the archive. Raises ``backup.invalid`` and ``storage.full``.
    """
    if not file.is_file():
        reason = "is not a regular file" if file.exists() else "does not exist"
        raise FerretError.of_field("request.invalid", "FILE", str(file), reason)
    try:
        sizes, manifest = _look(file, folder)
    except (*UNREADABLE, ValidationError) as error:
        raise invalid(file, f"it cannot be read: {error}") from error
    if manifest is None:
        raise invalid(file, f"it ends before its {MANIFEST}: the backup was cut off")
    require_equal(file, sizes, {name: entry.size for name, entry in manifest.files.items()})
    if not migrate.knows(manifest.revision):
        found = f"its database is at revision {manifest.revision}"
        raise invalid(file, f"{found}, which this version does not know: restore it with the version that made it")
    return manifest


def require_equal(file: Path, found: Mapping[str, object], said: Mapping[str, object]) -> None:
    """Raises ``backup.invalid`` if the members differ from the manifest."""
    wrong = sorted(name for name in {*found, *said} if found.get(name) != said.get(name))
    if wrong:
        raise invalid(file, f"{len(wrong)} of its files do not match the manifest, the first is {wrong[0]}")


def invalid(file: Path, reason: str) -> FerretError:
    return FerretError("backup.invalid", f"{file}: {reason}")


def _look(file: Path, folder: Path) -> tuple[dict[str, int], Manifest | None]:
    """Returns the sizes of all members but the manifest, and the manifest.

    A small file can unpack to a large one: each size is compared with the free space before the member is unpacked.
    """
    sizes: dict[str, int] = {}
    manifest: Manifest | None = None
    with gzip.open(file) as unpacked, tarfile.open(fileobj=unpacked, mode="r|", tarinfo=Member) as archive:
        for member in archive:
            _require_room(member.size + sum(sizes.values()), folder)
            if manifest is not None:
                raise invalid(file, f"{member.name} comes after the manifest")
            if member.name == MANIFEST:
                manifest = _manifest(archive, member)
            else:
                _check(file, member, sizes)
                sizes[member.name] = member.size
        if len(unpacked.read(HEADER_BYTES)) == HEADER_BYTES:  # reading to the end compares the checksum of gzip
            raise invalid(file, "more comes after its end")
    return sizes, manifest


def _check(file: Path, member: tarfile.TarInfo, sizes: dict[str, int]) -> None:
    """Raises unless the member is a file that a backup holds, once: its name becomes a path."""
    path = PurePosixPath(member.name)
    own = member.name in {DATABASE, TOKEN_FILE} or (path.parts[:1] == (STORAGE,) and len(path.parts) > 1)
    if not own or ".." in path.parts or str(path) != member.name or member.issparse() or member.name in sizes:
        raise invalid(file, f"{member.name!r} does not belong in a backup")


def _manifest(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Manifest:
    stream = archive.extractfile(member)
    if stream is None or member.issparse() or member.size > MANIFEST_BYTES:
        raise ValueError("its manifest is not a file")
    return Manifest.model_validate(json.loads(stream.read()))


def _require_room(size: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < size + RESERVE_BYTES:
        detail = f"{folder} has {free >> 20} MiB free, {size + RESERVE_BYTES >> 20} MiB are needed"
        raise FerretError("storage.full", f"{detail}: free some space, or restore to another disk with --home")
