"""How every function here is compiled: without the interpreter's lock, IEEE arithmetic as written, cached on disk."""

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
    """Compiled on first call for the types it is called with, and read from the cache by later processes.

    Where neither the source's folder nor the user's cache can be written, every process compiles for itself.
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
    """Two things numba's cache leaves to chance.

    It asks whether the function's own file has changed, but not those of the functions and constants it uses; and
    two processes that compile it for different types at once may give their code the same file name.
    """
    file._source_stamp = _sources()
    file._data_name_pattern = file._data_name_pattern.replace("{number", f"{PROCESS}.{{number")


@cache
def _sources() -> str:
    """One digest of all that compiled code is made from: this package and the format's modules."""
    folder = Path(__file__).parent
    files = [*folder.glob("*.py"), *folder.parents[1].glob("*.py")]
    return digest_bytes(b"".join(path.read_bytes() for path in sorted(files)))
