"""Upload of a large blob in parts: a few are in memory at a time, and parts that have arrived are not sent again.

The parts of a killed writer remain at the store as an unfinished upload. The next writer of the same blob continues it:
a part counts as sent if the store has the same number of bytes with the same MD5. Only a complete upload is visible.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ferret_core.protocol.buffers import Pieces, size_of
from ferret_core.protocol.errors import FerretError
from ferret_core.storage._bucket import DIGEST, Bucket, code_of, content_md5, storage_errors
from ferret_core.system.failpoints import failpoint

SENDERS = 4
"""Parts sent at a time, each held in memory."""
MOST_PARTS = 10_000
BEGUN_ANEW = frozenset({"InvalidPart", "NoSuchUpload"})
SKEW_SECONDS = 60.0
"""Assumed maximum difference between the clocks of a store's machines."""


class Source(NamedTuple):
    """A blob of ``size`` bytes; ``part(offset, length)`` reads a range of it."""

    size: int
    part: Callable[[int, int], bytes]

    @classmethod
    def of_pieces(cls, pieces: Pieces) -> Source:
        return cls(size_of(pieces), partial(_slice, pieces))

    @classmethod
    def of_file(cls, path: Path) -> Source:
        return cls(path.stat().st_size, partial(_read, path))


def send(bucket: Bucket, key: str, source: Source, digest: str) -> None:
    """Stores the blob in parts; starts again if the store has lost or altered some of them."""
    since = bucket.clock()
    for _ in range(bucket.store.attempts):
        try:
            _Upload(bucket, key, source, digest).send()
        except FerretError as error:
            if code_of(error) not in BEGUN_ANEW:
                raise
            if code_of(error) == "InvalidPart":
                continue
        if _is_there(bucket, key, source, digest, since - SKEW_SECONDS):  # another may have completed it
            return
    detail = f"{bucket} does not keep {key}, which was sent {bucket.store.attempts} times: check the store"
    raise FerretError("storage.unreachable", detail)


class _Upload:
    def __init__(self, bucket: Bucket, key: str, source: Source, digest: str) -> None:
        self._bucket = bucket
        self._key = key
        self._source = source
        self._digest = digest
        self._step = max(bucket.store.part_bytes, -(-source.size // MOST_PARTS))

    def send(self) -> None:
        upload = self._begun() or begin(self._bucket, self._key, self._digest)
        there = {part["PartNumber"]: part for part in parts_of(self._bucket, self._key, upload)}
        numbers = range(1, -(-self._source.size // self._step) + 1)
        with ThreadPoolExecutor(min(SENDERS, len(numbers)), "ferret-upload") as pool:
            tags = list(pool.map(partial(self._send_part, upload, there), numbers))
        failpoint("bucket.uploaded")
        self._complete(upload, [{"PartNumber": n, "ETag": tag} for n, tag in zip(numbers, tags, strict=True)])

    def _begun(self) -> str | None:
        """Returns the last unfinished upload of this object."""
        found = [upload for key, upload, _ in unfinished(self._bucket, self._key) if key == self._key]
        return found[-1] if found else None

    def _send_part(self, upload: str, arrived: Mapping[int, Any], number: int) -> str:
        data = self._source.part((number - 1) * self._step, self._step)
        md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
        there = arrived.get(number)
        if there is not None and (there["Size"], there["ETag"].strip('"')) == (len(data), md5):
            return there["ETag"]
        sent = {"UploadId": upload, "PartNumber": number, "Body": data, "ContentMD5": content_md5(data)}
        return self._bucket.call(self._bucket.client.upload_part, self._key, **sent)["ETag"]

    def _complete(self, upload: str, parts: list[dict[str, Any]]) -> None:
        complete = self._bucket.client.complete_multipart_upload
        try:
            self._bucket.call(complete, self._key, UploadId=upload, MultipartUpload={"Parts": parts})
        except FerretError as error:
            if code_of(error) == "InvalidPart":
                abort(self._bucket, self._key, upload)
            raise


def begin(bucket: Bucket, key: str, digest: str) -> str:
    """Starts a new upload and returns its id."""
    return bucket.call(bucket.client.create_multipart_upload, key, Metadata={DIGEST: digest})["UploadId"]


def unfinished(bucket: Bucket, prefix: str = "") -> list[tuple[str, str, float]]:
    """Lists key, id and start (seconds by the store's clock) of every unfinished upload, oldest first."""
    found: list[tuple[str, str, float]] = []
    with storage_errors(str(bucket), prefix):
        pages = bucket.client.get_paginator("list_multipart_uploads")
        for page in pages.paginate(Bucket=bucket.name, Prefix=f"{bucket.prefix}{prefix}"):
            for upload in page.get("Uploads", ()):
                key, begun = upload["Key"].removeprefix(bucket.prefix), upload["Initiated"].timestamp() // 1
                found.append((key, upload["UploadId"], begun))
    return sorted(found, key=lambda upload: upload[2])


def parts_of(bucket: Bucket, key: str, upload: str) -> list[Any]:
    """Lists the arrived parts of an unfinished upload; empty if the upload no longer exists."""
    pages = bucket.client.get_paginator("list_parts")
    try:
        with storage_errors(str(bucket), key):
            named = pages.paginate(Bucket=bucket.name, Key=f"{bucket.prefix}{key}", UploadId=upload)
            return [part for page in named for part in page.get("Parts", ())]
    except FerretError as error:
        if code_of(error) != "NoSuchUpload":
            raise
        return []


def abort(bucket: Bucket, key: str, upload: str) -> None:
    """Aborts an unfinished upload with all its parts, if it exists."""
    try:
        bucket.call(bucket.client.abort_multipart_upload, key, UploadId=upload)
    except FerretError as error:
        if code_of(error) != "NoSuchUpload":
            raise


def _is_there(bucket: Bucket, key: str, source: Source, digest: str, since: float) -> bool:
    try:
        found = bucket.head(key)
    except FerretError as error:
        if error.code != "storage.missing":
            raise
        return False
    return (found.size, found.digest) == (source.size, digest) and found.stored_at >= since


def _slice(pieces: Pieces, offset: int, length: int) -> bytes:
    taken, end = bytearray(), offset + length
    begin = 0
    for piece in pieces:
        taken += piece[max(0, offset - begin) : max(0, end - begin)]
        begin += len(piece)
    return bytes(taken)


def _read(path: Path, offset: int, length: int) -> bytes:
    with path.open("rb") as file:
        return os.pread(file.fileno(), length, offset)
