"""A bucket, or the part of it under a prefix: single requests with useful retries and typed errors."""

from __future__ import annotations

import hashlib
import io
import os
import threading
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from ferret_core.protocol.errors import FerretError
from ferret_core.storage.base import ListedFile, ObjectStore

PERMISSIONS = {
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "DeleteObject": "s3:DeleteObject",
    "GetObject": "s3:GetObject",
    "HeadBucket": "s3:ListBucket",
    "HeadObject": "s3:GetObject",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListObjectsV2": "s3:ListBucket",
    "ListParts": "s3:ListMultipartUploadParts",
}
"""Permission for each request; all others write, and need :data:`WRITING`."""
WRITING = "s3:PutObject"
MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
FULL = frozenset({"507", "InsufficientStorage", "QuotaExceeded", "XMinioStorageFull"})
FORBIDDEN = frozenset({"403", "AccessDenied", "AllAccessDisabled"})
STRANGER = frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"})
"""Codes for invalid credentials."""
OVERLOADED = frozenset({"SlowDown", "RequestTimeout", "RequestTimeTooSkewed", "Throttling", "TooManyRequests"})
INSTALL = "pip install 'ferret-service[s3]'"
DIGEST = "ferret-digest"
"""Metadata key with the BLAKE3 of the blob to be stored; it does not prove the stored bytes."""
COPIED_AT_ONCE = 4 << 30
"""S3 copies objects of more than 5 GiB only in several requests."""
DAMAGED_ON_THE_WAY = frozenset({"BadDigest", "XAmzContentSHA256Mismatch"})

R = TypeVar("R")
BUFFER_BYTES = 1 << 18


@contextmanager
def storage_errors(store: str, key: str) -> Generator[None]:
    """Converts the library's exceptions about ``key`` (empty for the bucket itself) in the block to Ferret's errors."""
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

    try:
        yield
    except ClientError as error:
        raise _refusal(store, key, error) from error
    except (NoCredentialsError, NoRegionError) as error:
        detail = f"{store}: {error}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role"
        region = f"{store}: {error}: set FERRET_S3_REGION"
        raise FerretError("storage.refused", region if isinstance(error, NoRegionError) else detail) from error
    except (BotoCoreError, OSError) as error:
        detail = f"{store}{key} cannot be reached: {error}: check FERRET_S3_ENDPOINT and the network"
        raise FerretError("storage.unreachable", detail) from error


def code_of(error: FerretError) -> str | None:
    """Returns the store's own code of the error."""
    response = getattr(error.__cause__, "response", None) or {}
    return response.get("Error", {}).get("Code")


def _refusal(store: str, key: str, error: Any) -> FerretError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    operation = error.operation_name
    if code == "NoSuchBucket" or (code in MISSING and operation == "HeadBucket"):
        return FerretError("storage.refused", f"{store}: there is no such bucket: create it, or set FERRET_STORAGE_URL")
    if code in MISSING:
        return FerretError("storage.missing", f"{key} is not in the storage {store}")
    if code in FULL:
        return FerretError("storage.full", f"{store} has no room for {key}: raise its quota")
    if code in STRANGER:
        return FerretError("storage.refused", f"{store} does not accept the credentials ({code}): renew them")
    if code in FORBIDDEN:
        permission = PERMISSIONS.get(operation, WRITING)
        return FerretError("storage.refused", f"{store}{key}: the permission {permission} is missing: grant it")
    if status >= 500 or code in OVERLOADED:
        detail = f"{store} does not answer requests now ({code or status}, after several attempts): it will be retried"
        return FerretError("storage.unreachable", detail)
    return FerretError("storage.refused", f"{store}{key}: {operation} was refused: {error}")


class ObjectHead(NamedTuple):
    """An object's bytes, time of the last store in seconds by the store's clock, and recorded digest."""

    size: int
    stored_at: float
    digest: str | None


class Bucket:
    """A bucket. Keys are relative to the prefix."""

    def __init__(self, url: str, store: ObjectStore) -> None:
        parts = urlsplit(url)
        if not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
            message = "is not of the form s3://bucket/prefix; credentials come from the environment"
            raise FerretError.of_field("settings.invalid", "FERRET_STORAGE_URL", None, message)
        self.name = parts.netloc
        self.prefix = f"{folder}/" if (folder := parts.path.strip("/")) else ""
        self.store = store
        self._making = threading.Lock()

    def __str__(self) -> str:
        return f"s3://{self.name}/{self.prefix}"

    @property
    def client(self) -> Any:
        """boto3's client; it may be shared between threads."""
        with self._making:
            return self._client

    @cached_property
    def _client(self) -> Any:
        try:
            from boto3.session import Session
            from botocore.config import Config
        except ModuleNotFoundError as error:
            raise FerretError("dependency.missing", f"boto3 is not installed; s3:// needs it: {INSTALL}") from error
        store = self.store
        by_path = store.endpoint is not None if store.path_style is None else store.path_style
        config = Config(
            retries={"mode": "standard", "total_max_attempts": store.attempts},
            connect_timeout=store.timeout_seconds,
            read_timeout=store.timeout_seconds,
            s3={"addressing_style": "path" if by_path else "auto"},
            # Every upload has a Content-MD5, which every store supports; some do not support the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            max_pool_connections=16,
        )
        with storage_errors(str(self), ""):
            session = Session(region_name=store.region)
            region = session.region_name or ("us-east-1" if store.endpoint else None)
            return session.client("s3", endpoint_url=store.endpoint, region_name=region, config=config)

    def call(self, act: Callable[..., R], key: str, **arguments: Any) -> R:
        """Calls ``act`` on the object ``key``; retries if its bytes were damaged on the way to the store."""
        for attempt in range(1, self.store.attempts + 1):
            try:
                return self._call(act, key, **arguments)
            except FerretError as error:
                if code_of(error) not in DAMAGED_ON_THE_WAY or attempt == self.store.attempts:
                    raise
        raise AssertionError("at least one attempt")

    def _call(self, act: Callable[..., R], key: str, **arguments: Any) -> R:
        with storage_errors(str(self), key):
            return act(Bucket=self.name, Key=f"{self.prefix}{key}", **arguments)

    def put(self, key: str, data: bytes, digest: str | None = None) -> None:
        """Stores the whole object in one request; it is complete when this returns, and invisible before."""
        noted = {"Metadata": {DIGEST: digest}} if digest else {}
        self.call(self.client.put_object, key, Body=data, ContentMD5=content_md5(data), **noted)

    def head(self, key: str) -> ObjectHead:
        """Returns the object's properties; raises ``storage.missing``."""
        found = self.call(self.client.head_object, key)
        return ObjectHead(found["ContentLength"], _seconds(found["LastModified"]), found["Metadata"].get(DIGEST))

    def get(self, key: str, start: int = 0) -> tuple[Any, int]:
        """Returns the object's bytes from ``start`` as a stream, and their number."""
        span = {"Range": f"bytes={start}-"} if start else {}
        found = self.call(self.client.get_object, key, **span)
        return found["Body"], found["ContentLength"]

    def read(self, key: str) -> bytes:
        """Reads one of Ferret's own small objects."""
        body, _ = self.get(key)
        with storage_errors(str(self), key), closing(body):
            return body.read()

    def renew(self, key: str, digest: str) -> None:
        """Renews the age of an object without transferring its bytes."""
        from boto3.s3.transfer import TransferConfig

        whole = f"{self.prefix}{key}"
        with storage_errors(str(self), key):
            self.client.copy(
                {"Bucket": self.name, "Key": whole},
                self.name,
                whole,
                ExtraArgs={"MetadataDirective": "REPLACE", "Metadata": {DIGEST: digest}},
                Config=TransferConfig(multipart_threshold=COPIED_AT_ONCE, multipart_chunksize=COPIED_AT_ONCE // 4),
            )

    def delete(self, key: str) -> None:
        """Deletes the object, if it exists."""
        self.call(self.client.delete_object, key)

    def list(self, prefix: str = "") -> Iterator[ListedFile]:
        """Lists every object under the prefix, in the order of the keys."""
        pages = self.client.get_paginator("list_objects_v2")
        with storage_errors(str(self), prefix):
            for page in pages.paginate(Bucket=self.name, Prefix=f"{self.prefix}{prefix}"):
                for found in page.get("Contents", ()):
                    key = found["Key"].removeprefix(self.prefix)
                    yield ListedFile(key, found["Size"], _seconds(found["LastModified"]))

    def clock(self) -> float:
        """Returns the store's time; raises ``storage.refused`` or ``storage.unreachable`` if the store is unusable."""
        with storage_errors(str(self), ""):
            found = self.client.head_bucket(Bucket=self.name)
        return parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()


def content_md5(data: bytes) -> str:
    """Returns the checksum that the store uses to detect damage on the way."""
    return b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _seconds(moment: Any) -> float:
    """Returns whole seconds: lists have finer times than other responses."""
    return float(moment.timestamp() // 1)


class Reader(io.RawIOBase):
    """The bytes of one object from ``start``, unverified; ``size`` is the object's length.

    Raises ``storage.missing`` immediately, and ``storage.unreachable`` after ``attempts`` consecutive attempts without
    data.
    """

    def __init__(self, bucket: Bucket, key: str, start: int = 0) -> None:
        self._bucket = bucket
        self._key = key
        self._position = start
        self._body, left = bucket.get(key, start)
        self.size = start + left

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        if begin + offset != self._position:
            self._drop()
            self._position = begin + offset
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        wanted = min(len(buffer), self.size - self._position)
        if wanted <= 0:
            return 0
        data = self._next(wanted)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        self._drop()
        super().close()

    def _next(self, most: int) -> bytes:
        """Returns at least one byte."""
        for _ in range(self._bucket.store.attempts):
            try:
                if data := self._stream(most):
                    return data
            except FerretError as error:
                if error.code != "storage.unreachable":
                    raise
            self._drop()
        detail = f"{self._bucket}{self._key} ends after {self._position} of {self.size} bytes, again and again"
        raise FerretError("storage.unreachable", f"{detail}: check the network")

    def _stream(self, most: int) -> bytes:
        if self._body is None:
            self._body, _ = self._bucket.get(self._key, self._position)
        with storage_errors(str(self._bucket), self._key):
            return self._body.read(most)

    def _drop(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None
