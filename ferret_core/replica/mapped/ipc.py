"""Messages between a replica's processes: a length of eight bytes, then arrays and JSON in the wire format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from ferret_core.protocol.wire import Array, Arrays, decode, encode

_LENGTH = 8


def write(pipe: BinaryIO | Any, arrays: Arrays, meta: Mapping[str, Any]) -> None:
    message = encode(arrays, meta)
    pipe.write(len(message).to_bytes(_LENGTH, "little"))
    pipe.write(message)
    pipe.flush()


def read(pipe: BinaryIO | Any) -> tuple[dict[str, Array], dict[str, Any]] | None:
    """Reads the next message; returns None if the other side has ended."""
    length = pipe.read(_LENGTH)
    if len(length) < _LENGTH:
        return None
    size = int.from_bytes(length, "little")
    message = pipe.read(size)
    return decode(message, size) if len(message) == size else None
