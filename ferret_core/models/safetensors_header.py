"""Where the tensors of a safetensors file lie, read strictly, so that its bytes can be mapped without a second look.

Layout (https://huggingface.co/docs/safetensors): 8 bytes little-endian header length; the header, a JSON object of
name → dtype, shape and data_offsets, two places counted from the header's end; the tensors' bytes, little-endian,
which fill the rest of the file without gap or overlap.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch

from ferret_core.protocol.errors import FerretError

MAX_HEADER_BYTES = 100_000_000
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


class Stored(NamedTuple):
    """One tensor: its file, type and shape, and its bytes begin … end − 1 of the file."""

    path: Path
    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


def read(path: Path) -> dict[str, Stored]:
    """Every tensor of the file by name; ``model.invalid`` names the file, and the tensor that is wrong."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if length > min(size - 8, MAX_HEADER_BYTES):
                raise invalid(path, "header length", length, f"does not fit a file of {size} bytes: copy it again")
            entries = read_json(path, file.read(length))
    except OSError as error:
        raise invalid(path, "file", str(path), f"cannot be read: {error.strerror}") from error
    entries.pop("__metadata__", None)
    found = {name: _stored(path, name, entry, 8 + length) for name, entry in entries.items()}
    _check_bytes(path, found, 8 + length, size)
    return found


def read_json(path: Path, text: bytes) -> dict[str, Any]:
    """The JSON object in a file or its header; ``model.invalid`` if it is none."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise invalid(path, "header", len(text), "is not JSON") from error
    if not isinstance(value, dict):
        raise invalid(path, "header", type(value).__name__, "is not a JSON object")
    return cast(dict[str, Any], value)


def invalid(path: Path, field: str, value: Any, message: str) -> FerretError:
    """``model.invalid`` about a tensor or another part of the file."""
    return FerretError.of_field("model.invalid", f"{path.name}: {field}", value, message)


def _stored(path: Path, name: str, entry: Any, body: int) -> Stored:
    if not isinstance(entry, dict) or set(cast(dict[str, Any], entry)) != {"dtype", "shape", "data_offsets"}:
        raise invalid(path, name, None, "needs exactly dtype, shape and data_offsets")
    fields = cast(dict[str, Any], entry)
    dtype = DTYPES.get(str(fields["dtype"]))
    if dtype is None:
        raise invalid(path, f"{name}.dtype", str(fields["dtype"]), f"is none of {', '.join(DTYPES)}")
    shape = _sizes(path, f"{name}.shape", fields["shape"])
    offsets = _sizes(path, f"{name}.data_offsets", fields["data_offsets"])
    needed = math.prod(shape) * dtype.itemsize
    if len(offsets) != 2 or offsets[1] - offsets[0] != needed:
        raise invalid(path, f"{name}.data_offsets", str(offsets), f"shape and dtype need {needed} bytes")
    return Stored(path, dtype, shape, body + offsets[0], body + offsets[1])


def _sizes(path: Path, field: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(size) is int and size >= 0 for size in cast(list[Any], value)):
        raise invalid(path, field, str(value), "is not a list of sizes")
    return tuple(cast(list[int], value))


def _check_bytes(path: Path, found: dict[str, Stored], body: int, size: int) -> None:
    """Raises unless the tensors follow each other from the header's end to the file's."""
    end = body
    for name, one in sorted(found.items(), key=lambda item: (item[1].begin, item[1].end)):
        if one.begin != end:
            raise invalid(path, f"{name}.data_offsets", one.begin - body, f"its bytes must begin at {end - body}")
        if one.end > size:
            raise invalid(path, name, one.end, f"its bytes end behind the file's {size}: copy it again")
        end = one.end
    if end != size:
        raise invalid(path, "file", size, f"holds {size - end} bytes that belong to no tensor")
