"""A child's output, in a log file of bounded size."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path
from threading import Thread
from typing import IO, NamedTuple, Self

CHUNK_BYTES = 1 << 16
TAIL_BYTES = 1 << 14
ANY_BYTES = "surrogateescape"


class Rotation(NamedTuple):
    """Rotation of a log of at most ``size`` bytes: it becomes ``.1``, which becomes ``.2``, … ``kept`` of them."""

    size: int
    kept: int

    @classmethod
    def configured(cls) -> Self:
        """Returns the rotation set by ``FERRET_LOG_BYTES`` and ``FERRET_LOG_FILES``."""
        from ferret_runtime.settings import ServiceSettings  # participants have no server

        settings = ServiceSettings.read()
        return cls(settings.log_bytes, settings.log_files)


class Log:
    """A log fed by a pipe, so that all output of a process is rotated, from any library."""

    def __init__(self, path: Path, rotation: Rotation) -> None:
        self._file = _File(path, rotation)
        self._reader: Thread | None = None
        self._tail = b""

    def follow(self, said: IO[bytes]) -> None:
        """Writes the output of ``said`` until it ends, in a separate thread."""
        self._tail = b""
        self._reader = Thread(target=self._copy, args=(said,), daemon=True)
        self._reader.start()

    def last_lines(self, count: int) -> list[str]:
        """Returns the last lines of the output since :meth:`follow`."""
        if self._reader:
            self._reader.join(timeout=1)  # the end of a process comes before the end of its words
        return self._tail.decode(errors="replace").splitlines()[-count:]

    def _copy(self, said: IO[bytes]) -> None:
        with said:
            rest = b""
            while chunk := os.read(said.fileno(), CHUNK_BYTES):
                self._tail = (self._tail + chunk)[-TAIL_BYTES:]
                lines, end, rest = (rest + chunk).rpartition(b"\n")
                self._file.write(lines + end)
                if len(rest) > CHUNK_BYTES:
                    self._file.write(rest)
                    rest = b""
            self._file.write(rest)
        self._file.close()


class _File(RotatingFileHandler):
    """A full disk loses lines, and never stops a child."""

    terminator = ""

    def __init__(self, path: Path, rotation: Rotation) -> None:
        super().__init__(
            path, maxBytes=rotation.size, backupCount=rotation.kept, encoding="utf-8", errors=ANY_BYTES, delay=True
        )

    def write(self, said: bytes) -> None:
        if said:
            self.handle(logging.makeLogRecord({"msg": said.decode(errors=ANY_BYTES)}))

    def handleError(self, record: logging.LogRecord) -> None:
        pass
