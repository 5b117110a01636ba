"""Compilation of the CPU kernels: without the interpreter's lock, IEEE arithmetic as written, cached on disk."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

from ferret_core.protocol.digest import digest_bytes

PROCESS = secrets.token_hex(4)
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compiles a function at its first call for the types of the arguments; later processes read it from the cache.

    If neither the source's folder nor the user's cache is writable, every process compiles separately.
    """
    try:
        dispatcher: Any = _njit(function, cache=True)
    except RuntimeError:
        return _njit(function, cache=False)
    _make_safe(dispatcher._cache._cache_file)
    return dispatcher


def _njit(function: Callable[..., Any], *, cache: bool) -> Any:
    return numba.njit(nogil=True, error_model="numpy", cache=cache)(function)


def _make_safe(file: Any) -> None:
    """Fixes two gaps in numba's cache.

    It checks for changes of the function's own file, but not of the files of functions and constants that it uses. And
    two processes that compile it for different types at the same time may give their code the same file name.
    """
    file._source_stamp = _sources()
    file._data_name_pattern = file._data_name_pattern.replace("{number", f"{PROCESS}.{{number")


@cache
def _sources() -> str:
    """Returns one digest of all sources of compiled code: this package and the format's modules."""
    folder = Path(__file__).parent
    files = [*folder.glob("*.py"), *folder.parents[1].glob("*.py")]
    return digest_bytes(b"".join(path.read_bytes() for path in sorted(files)))
