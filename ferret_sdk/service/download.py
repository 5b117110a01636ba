"""Atomic download of a file: resumed by Range, checked by digest, renamed at the end."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path

from ferret_core.protocol.digest import digest_file
from ferret_core.protocol.errors import FerretError
from ferret_core.system.atomic_files import disk_full_as_error, rename_durably
from ferret_sdk.http.retry import PATIENT, Retry, Transient
from ferret_sdk.http.safe_paths import resolve_inside
from ferret_sdk.http.transport import Transport

OnBytes = Callable[[int], None]
"""Callback with the number of bytes present."""


def download(
    transport: Transport, path: str, target: Path, *, size: int, digest: str, on_bytes: OnBytes | None = None
) -> None:
    """Downloads ``size`` bytes at ``path`` to ``target``. Continues the part left by an earlier attempt.

    At most ``size`` bytes and one chunk are read, whatever the server sends. Raises ``storage.corrupt`` if the bytes do
    not have ``digest`` (BLAKE3), ``storage.full`` if they do not fit.
    """
    if target.is_file() and target.stat().st_size == size and digest_file(target) == digest:
        return
    part = _part(target)
    with disk_full_as_error(f"{target} ({size} bytes)"):
        _fetch(transport, path, part, size, digest, on_bytes)
        if digest_file(part) != digest:
            part.unlink()
            raise FerretError("storage.corrupt", f"{target.name} does not match its digest {digest}; download it again")
        rename_durably(part, target)


def missing(target: Path, size: int) -> int:
    """Returns the bytes of ``size`` that a download to ``target`` still adds to the disk."""
    if target.is_file():
        return 0
    part = _part(target)
    return size - min(part.stat().st_size, size) if part.is_file() else size


def require_empty(folder: Path, field: str) -> None:
    """Refuses a folder with files, before any work is done."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FerretError.of_field("request.invalid", field, str(folder), "is not an empty folder; choose another")


def _part(target: Path) -> Path:
    return resolve_inside(target.parent, target.with_name(f"{target.name}.part"))


def _fetch(transport: Transport, path: str, part: Path, size: int, digest: str, on_bytes: OnBytes | None) -> None:
    retry = Retry(PATIENT)
    with part.open("ab", buffering=0) as file:
        while (have := _length(file)) != size:
            try:
                _append(transport, path, file, size, digest, on_bytes)
            except Transient as failure:
                if _length(file) > have:
                    retry.reset()
                retry.wait(failure)
        os.fsync(file.fileno())


def _append(transport: Transport, path: str, file: FileIO, size: int, digest: str, on_bytes: OnBytes | None) -> None:
    """Appends the missing bytes. Starts over if the server does not support ranges."""
    have = _length(file)
    headers = {"Range": f"bytes={have}-", "If-Range": f'"{digest}"'} if 0 < have < size else {}
    with transport.stream(path, headers) as answer:
        if answer.status != 206:
            file.truncate(0)
        for chunk in answer.chunks:
            if _length(file) + len(chunk) > size:
                file.truncate(0)
                raise FerretError("storage.corrupt", f"{path} is longer than the {size} bytes announced")
            file.write(chunk)
            if on_bytes is not None:
                on_bytes(_length(file))
    if _length(file) < size:
        detail = f"{path} ended after {_length(file)} of {size} bytes; run the command again to continue"
        raise Transient(FerretError("server.unexpected", detail))


def _length(file: FileIO) -> int:
    return file.seek(0, os.SEEK_END)
