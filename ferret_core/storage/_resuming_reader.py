"""An object as a readable file: if the connection breaks, reading resumes at the same place."""

from __future__ import annotations

import io
import os
from typing import Any

from ferret_core.protocol.errors import FerretError
from ferret_core.storage._bucket import Bucket
from ferret_core.storage._errors import told

BUFFER_BYTES = 1 << 18


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
        with told(str(self._bucket), self._key):
            return self._body.read(most)

    def _drop(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None
