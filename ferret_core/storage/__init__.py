"""Storage by URL; its scheme is the name of the backend's file."""

from __future__ import annotations

from urllib.parse import urlsplit

from ferret_core import discovery
from ferret_core.storage.base import FileKind, ObjectStore, Storage, StoredFile, blob_location

__all__ = ["FileKind", "ObjectStore", "Storage", "StoredFile", "blob_location", "open_storage"]


def open_storage(url: str, store: ObjectStore | None = None) -> Storage:
    """Opens the storage at ``url``, e.g. ``file:///var/lib/ferret/storage`` or ``s3://bucket/prefix``.

    ``store``: the connection to an object store. Raises ``spec.invalid`` for an unknown scheme.
    """
    module = discovery.load(__name__, urlsplit(url).scheme or "file", "storage_url")
    return module.Backend(url, store)
