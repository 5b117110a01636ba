"""Files named by a specification: only in allowed folders, only regular files, and with bounded reading.

The author of a specification need not own the machine. A path is therefore accessed only if it is, after following
links, under one of the roots that a worker reads from, and not among the service's own files. A pipe or a device, which
may never end, is not opened; reading stops when a small file unpacks into a huge one. No error quotes a file's content.
"""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from operator import or_
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

SETTING = "FERRET_DATA_ROOTS"
USERS_DATA = "data"
"""The one folder in the service's home for users' files: the service writes nothing there."""
GIB = 2**30
MAX_FILE_BYTES = 16 * GIB
"""Maximum size of a file, packed and unpacked."""
MAX_LINE_BYTES = 16 * 2**20
MAX_LINES = 20_000_000
MAX_DOCUMENT_BYTES = 128 * 2**20
"""Maximum size of a document that is parsed as a whole."""
MAX_RATIO = 200
"""Maximum ratio of unpacked to packed size; text rarely exceeds 20."""
_ANY_RATIO_BYTES = 16 * 2**20

_READING = reduce(
    or_, (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY")), os.O_RDONLY
)
"""Flags that the system has; without the last, Windows would change line ends."""

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class UntrustedFileError(Exception):
    """The reason why a file is not read, without its contents."""


class Readable(NamedTuple):
    """The files that specifications may name: the ones under ``roots``.

    The service's own files are excluded even there: all of ``home`` except its folder :data:`USERS_DATA`, and the
    folders ``stores``, wherever they are.
    """

    roots: tuple[Path, ...]
    home: Path | None = None
    stores: tuple[Path, ...] = ()

    def followed(self) -> Readable:
        """Returns the same with all links followed."""
        roots, stores = (tuple(map(_resolved, folders)) for folders in (self.roots, self.stores))
        return Readable(roots, self.home and _resolved(self.home), stores)

    def closes(self, path: Path) -> bool:
        """True if ``path`` is one of the service's own files."""
        if self.home is not None and _lies_in(path, self.home) and not _lies_in(path, self.home / USERS_DATA):
            return True
        return any(_lies_in(path, store) for store in self.stores)


_readable: ContextVar[Readable | None] = ContextVar("readable", default=None)


@contextmanager
def allowed_roots(readable: Readable | None) -> Generator[None]:
    """Restricts reading in the block, in this thread, to ``readable`` files; None allows every file."""
    token = _readable.set(readable and readable.followed())
    try:
        yield
    finally:
        _readable.reset(token)


def allowed(path: str | Path, readable: Readable | None = None) -> Path:
    """Returns ``path`` with its links followed; raises ``UntrustedFileError`` if it may not be read, even if it does
    not exist."""
    limits = _readable.get() if readable is None else readable.followed()
    real = _resolved(path)
    if limits is None:
        return real
    if not any(real.is_relative_to(root) for root in limits.roots):
        message = f"is outside the folders that this service reads: add its folder to {SETTING}, or move it"
        raise UntrustedFileError(f"{message}; ferret serve takes --root")
    if limits.closes(real):
        message = "is in a folder where the service keeps its own files, which no experiment reads"
        raise UntrustedFileError(f"{message}: move it to FERRET_HOME/{USERS_DATA}, or to another folder in {SETTING}")
    return real


def _lies_in(path: Path, folder: Path) -> bool:
    """True if ``path`` is in ``folder``, also under another spelling of its name or another mount."""
    return path.is_relative_to(folder) or any(_is_same(parent, folder) for parent in (path, *path.parents))


def _is_same(path: Path, folder: Path) -> bool:
    try:
        return path.samefile(folder)
    except OSError:  # one of them does not exist
        return False


def _resolved(path: str | Path) -> Path:
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # circular links, a null byte
        raise UntrustedFileError("is not a path: its links lead in a circle, or it holds a null byte") from error


def open_regular(path: str | Path, max_bytes: int = MAX_FILE_BYTES) -> BinaryIO:
    """Opens the regular file at ``path`` for reading; raises ``OSError``, or ``UntrustedFileError`` for any other kind.

    Its kind is checked before it is opened, because opening can block or affect a device, and again afterwards, because
    it may have been replaced.
    """
    _require_regular(Path(path).stat(), max_bytes)
    number = os.open(path, _READING)
    try:
        _require_regular(os.fstat(number), max_bytes)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def _require_regular(found: os.stat_result, max_bytes: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "something else")
        raise UntrustedFileError(f"is {kind}, not a file: give the path of a file")
    if found.st_size > max_bytes:
        raise UntrustedFileError(f"is larger than the {_size(max_bytes)} that are read: split it")


class BoundedFile:
    """A file that is read line by line or whole, unpacked if its name ends in ``.gz``, and always bounded."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._packed = path.suffix == ".gz"
        self._size = os.fstat(stream.fileno()).st_size
        self._stream = cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb")) if self._packed else stream
        self._read = 0

    def lines(self) -> Iterator[bytes]:
        """Yields the lines, each with its line end."""
        number = 0
        while line := self._stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            self._count(len(line))
            if len(line) > MAX_LINE_BYTES:
                raise UntrustedFileError(f"line {number} is longer than {_size(MAX_LINE_BYTES)}: split it")
            if number > MAX_LINES:
                raise UntrustedFileError(f"has more than {MAX_LINES:,} lines: split it")
            yield line

    def whole(self) -> bytes:
        """Returns the whole content."""
        data = self._stream.read(MAX_DOCUMENT_BYTES + 1)
        self._count(len(data))
        if len(data) > MAX_DOCUMENT_BYTES:
            raise UntrustedFileError(f"holds more than {_size(MAX_DOCUMENT_BYTES)}: write JSON Lines instead")
        return data

    def _count(self, count: int) -> None:
        self._read += count
        if self._read > MAX_FILE_BYTES:
            raise UntrustedFileError(f"holds more than the {_size(MAX_FILE_BYTES)} that are read: split it")
        if self._packed and self._read > max(_ANY_RATIO_BYTES, MAX_RATIO * self._size):
            raise UntrustedFileError(f"unpacks to more than {MAX_RATIO} times its size: give the file unpacked")


@contextmanager
def open_untrusted(path: str | Path, *, anywhere: bool = False) -> Generator[BoundedFile]:
    """Opens the file at ``path``; anything that prevents reading, also during the block, raises ``UntrustedFileError``.

    ``anywhere``: it need not be under a root, because the path does not come from a user.
    """
    try:
        real = Path(path) if anywhere else allowed(path)
        with open_regular(real) as stream:
            yield BoundedFile(Path(path), stream)
    except EOFError as error:
        raise UntrustedFileError(
            "cannot be read (it ended before the end-of-stream marker): give the whole file"
        ) from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise UntrustedFileError(
            "cannot be read (Not a gzipped file, or a broken one): give a readable file"
        ) from error
    except OSError as error:
        raise UntrustedFileError(f"cannot be read ({error.strerror}): give the path of a readable file") from error


def _size(count: int) -> str:
    return f"{count // GIB} GiB" if count >= GIB else f"{count // 2**20} MiB"
