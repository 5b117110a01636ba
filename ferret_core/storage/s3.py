"""``s3://bucket/prefix``: the objects of an S3-compatible store, with a local cache.

A file is visible only after its upload is complete; large ones are sent in parts, and interrupted uploads are resumed.
Read bytes are verified against their digest: no ETag or checksum of the store is trusted. A file's age is that of its
object by the store's clock.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from ferret_core.protocol.buffers import Pieces, mapped
from ferret_core.protocol.digest import digest_bytes, digest_file, digest_stream
from ferret_core.protocol.errors import FerretError
from ferret_core.storage._bucket import BUFFER_BYTES, Bucket, Reader
from ferret_core.storage._cache import Cache, chunks
from ferret_core.storage._multipart import Source, abort, begin, parts_of, send, unfinished
from ferret_core.storage._object_locks import ObjectLocks
from ferret_core.storage.base import FileKind, ListedFile, ObjectStore, StoredFile, blob_location, corrupt, taken
from ferret_core.system.failpoints import failpoint

READ_BYTES = 1 << 20
"""Larger files are mapped for a view."""
OWNER = ".owner"
COLLECTED = ".collected"
UPLOADS = ".uploads"
"""Listed location of unfinished uploads."""


class Backend:
    """Content-addressed objects: ``<kind>/<first two digits>/<digest>``, and folders of named files."""

    def __init__(self, url: str, store: ObjectStore | None = None) -> None:
        assert store is not None, "the settings say how a store is reached"
        self._bucket = Bucket(url, store)
        self._cache = Cache(store.cache, store.cache_bytes)
        self._marks = ObjectLocks(self._bucket)

    def __str__(self) -> str:
        return str(self._bucket)

    def claim(self, owner: str) -> None:
        try:
            found = self._bucket.read(OWNER).decode()
        except FerretError as error:
            if error.code != "storage.missing":
                raise
            found = ""
        if found == owner:
            return
        if found and next(self._files(), None) is not None:
            raise taken(str(self), found, owner)
        self._bucket.put(OWNER, owner.encode())

    def rehearse(self) -> None:
        self.clock()
        key, data = f".rehearsal/{token_hex(8)}", b"Ferret was here"
        next(self._bucket.list(key), None)
        unfinished(self._bucket, key)
        self._bucket.put(key, data)
        if (found := self._bucket.read(key)) != data:
            raise corrupt(key, digest_bytes(data), digest_bytes(found))
        self._bucket.renew(key, digest_bytes(data))
        abort(self._bucket, key, upload := begin(self._bucket, key, digest_bytes(data)))
        parts_of(self._bucket, key, upload)
        self._bucket.delete(key)

    def put_bytes(self, data: bytes, kind: FileKind, digest: str | None = None) -> StoredFile:
        return self.put_pieces((data,), kind, digest or digest_bytes(data))

    def put_pieces(self, pieces: Pieces, kind: FileKind, digest: str) -> StoredFile:
        return self._put(Source.of_pieces(pieces), blob_location(kind, digest), digest)

    def put_file(self, path: Path, kind: FileKind, digest: str) -> StoredFile:
        return self._move_in(path, blob_location(kind, digest), digest)

    def require_room(self, size: int) -> None:
        self._cache.require_room(size)

    def growing(self, name: str) -> Path:
        return self._cache.growing(name)

    def scratch(self, size: int) -> AbstractContextManager[Path]:
        return self._cache.scratch(size)

    def put_folder(self, folder: Path, kind: FileKind, last: str) -> dict[str, StoredFile]:
        names = [*sorted(path.name for path in folder.iterdir() if path.name != last), last]
        digests = {name: digest_file(folder / name) for name in names}
        stored: dict[str, StoredFile] = {}
        with self._cache.holding(self._cache.path(base := f"{kind}/{digests[last]}")):
            for name in names:
                if name == last:
                    failpoint("storage.unsealed")
                stored[name] = self._move_in(folder / name, f"{base}/{name}", digests[name])
        return stored

    def read(self, location: str, digest: str) -> bytes:
        with self.open(location) as file:
            data = file.read()
        if (found := digest_bytes(data)) != digest:
            raise corrupt(location, digest, found)
        return data

    def view(self, location: str, digest: str) -> memoryview:
        if not self._cache.path(location).exists() and self.size(location) <= READ_BYTES:
            return memoryview(self.read(location, digest))
        with self._cache.opened(location, digest, partial(self._fetch, location)) as file:
            return mapped(file)

    def verify(self, location: str, digest: str) -> None:
        with self.open(location) as file:
            found = digest_stream(file)
        if found != digest:
            raise corrupt(location, digest, found)

    @contextmanager
    def folder(self, files: Mapping[str, str]) -> Generator[Path]:
        folder = self._cache.path(next(iter(files))).parent
        with self._cache.holding(folder):
            for location, digest in files.items():
                self._cache.opened(location, digest, partial(self._fetch, location)).close()
            yield folder

    def open(self, location: str) -> BinaryIO:
        return BufferedReader(Reader(self._bucket, location), BUFFER_BYTES)

    def path(self, location: str) -> Path:
        return self._cache.path(location)

    def size(self, location: str) -> int:
        return self._bucket.head(location).size

    def clock(self) -> float:
        return self._bucket.clock()

    def list(self) -> Iterator[ListedFile]:
        yield from self._files()
        for key, upload, begun in unfinished(self._bucket):
            size = sum(part["Size"] for part in parts_of(self._bucket, key, upload))
            yield ListedFile(f"{UPLOADS}/{key}#{upload}", size, begun)

    def delete(self, location: str, before: float) -> bool:
        if location.startswith(f"{UPLOADS}/"):
            return self._abort(location, before)
        with self._marks.condemning(location):
            try:
                old = self._bucket.head(location).stored_at < before
            except FerretError as error:
                if error.code != "storage.missing":
                    raise
                old = False
            if old:
                self._bucket.delete(location)
                failpoint("storage.deleted")
        return old

    @contextmanager
    def collecting(self, every: float) -> Generator[bool]:
        if not self._due(every):
            yield False
            return
        with self._marks.holding("collecting") as own:
            others = self._marks.others("collecting", own) or self._marks.others("copying")
            turn = not others and self._due(every)
            yield turn
            if turn:
                self._bucket.put(COLLECTED, b"")

    @contextmanager
    def copying(self) -> Generator[None]:
        with self._marks.holding("copying"):
            self._marks.wait_for_none("collecting")
            yield

    def _files(self) -> Iterator[ListedFile]:
        """Yields every blob: names that begin with a dot are Ferret's own."""
        return (file for file in self._bucket.list() if not file.location.startswith("."))

    def _put(self, source: Source, location: str, digest: str) -> StoredFile:
        """Stores the blob, again if a collector that found it old was about to delete it, or has deleted it."""
        self._send(source, location, digest)
        while self._marks.was_condemned(location) or not self._exists(location):
            self._send(source, location, digest)
        return StoredFile(digest, source.size, location)

    def _exists(self, location: str) -> bool:
        try:
            self._bucket.head(location)
        except FerretError as error:
            if error.code != "storage.missing":
                raise
            return False
        return True

    def _send(self, source: Source, location: str, digest: str) -> None:
        if source.size <= self._bucket.store.part_bytes:
            self._bucket.put(location, source.part(0, source.size), digest)
        elif not self._renew(source.size, location, digest):
            send(self._bucket, location, source, digest)

    def _renew(self, size: int, location: str, digest: str) -> bool:
        """True if the complete file already exists; it then counts as stored now."""
        try:
            if self.size(location) != size:
                return False
            self.verify(location, digest)
            self._bucket.renew(location, digest)
        except FerretError as error:
            if error.code not in {"storage.missing", "storage.corrupt"}:
                raise
            return False
        failpoint("storage.renewed")
        return True

    def _move_in(self, path: Path, location: str, digest: str) -> StoredFile:
        stored = self._put(Source.of_file(path), location, digest)
        self._cache.keep(path, location)
        self._cache.trim()
        return stored

    def _fetch(self, location: str, start: int) -> Iterator[bytes]:
        left = self.size(location) - start
        self._cache.require_room(left)
        return chunks(Reader(self._bucket, location, start)) if left > 0 else iter(())

    def _abort(self, location: str, before: float) -> bool:
        """Aborts an unfinished upload, unless parts were added recently."""
        key, _, upload = location.removeprefix(f"{UPLOADS}/").rpartition("#")
        added = [part["LastModified"].timestamp() for part in parts_of(self._bucket, key, upload)]
        if any(moment >= before for moment in added):
            return False
        abort(self._bucket, key, upload)
        return True

    def _due(self, every: float) -> bool:
        """True if the last collection was at least ``every`` seconds ago; the first call only records the time."""
        try:
            last = self._bucket.head(COLLECTED).stored_at
        except FerretError as error:
            if error.code != "storage.missing":
                raise
            self._bucket.put(COLLECTED, b"")
            last = self.clock()
        return self.clock() - last >= every
