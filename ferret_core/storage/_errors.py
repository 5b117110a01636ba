"""Conversion of an object store's errors, and of failures to reach it, to Ferret's, with the missing permission."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from ferret_core.protocol.errors import FerretError

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


@contextmanager
def told(store: str, key: str) -> Generator[None]:
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
