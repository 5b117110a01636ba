"""The wire format: named arrays and metadata in one safetensors blob, decoded strictly.

Layout (https://huggingface.co/docs/safetensors): 8 bytes little-endian header length, a JSON header, the arrays' bytes.
The metadata are canonical JSON under the single header key ``__metadata__.ferret`` and arrays are sorted by name, so
equal contents are equal bytes. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from ferret_core.protocol.buffers import Pieces, places
from ferret_core.protocol.digest import canonical_json
from ferret_core.protocol.errors import FerretError, field_errors
from ferret_core.protocol.ids import Digest, ExperimentId, ParticipantName
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.metrics import names_of
from ferret_core.protocol.spec import StrictModel

FORMAT_VERSION: Literal[1] = 1
MAX_HEADER_BYTES = 8 << 20
CONTRIBUTION_HEADER_BYTES = 64 << 10
"""Many times the header of any contribution."""
MAX_SHARD = 2**31 - 1

Array = NDArray[Any]
Arrays = Mapping[str, Array]

_DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


REPORTED = frozenset(names_of("participant"))
"""Metrics that a participant reports; the service measures all others of a round."""


class ContributionMeta(StrictModel):
    """A contribution's metadata. ``metrics`` are the participant's own measurements, e.g. its train loss.

    For coordinates, ``projection`` is the version of the projection format, ``seed`` selects the columns, and ``K`` is
    the number of columns per block, unless an array has it.
    """

    format: Literal[1]
    experiment: ExperimentId
    round: int = Field(ge=1, le=MAX_ROUNDS)
    participant: ParticipantName
    algorithm: str
    base_digest: Digest
    examples: int = Field(ge=1, le=MAX_SHARD)
    projection: int | None = None
    seed: int | None = Field(default=None, ge=0, lt=2**64)
    K: tuple[int, ...] | None = None
    metrics: dict[str, float] = Field(default_factory=dict)


@dataclass(frozen=True)
class Contribution:
    """One participant's upload for one round."""

    meta: ContributionMeta
    arrays: Arrays

    def encode(self) -> bytes:
        return b"".join(self.pieces())

    def pieces(self) -> Pieces:
        """Encodes the blob like :func:`pieces_of`, without copying the arrays."""
        return pieces_of(self.arrays, self.meta.model_dump(mode="json"))

    @classmethod
    def decode(cls, blob: bytes | memoryview, header_bytes: int = MAX_HEADER_BYTES) -> Contribution:
        """Decodes ``blob``; raises ``contribution.malformed`` or ``contribution.non_finite`` if it is not a
        contribution.

        ``header_bytes`` is the maximum length of the header.
        """
        arrays, raw = decode(blob, header_bytes)
        try:
            return cls(ContributionMeta.model_validate(raw), arrays)
        except ValidationError as error:
            raise FerretError(
                "contribution.malformed",
                f"the metadata are not those of a contribution: {error.error_count()} wrong fields",
                field_errors(error, ["metadata"]),
            ) from error


def encode(arrays: Arrays, meta: Mapping[str, Any]) -> bytes:
    """Encodes little-endian ``arrays`` (fp32, fp16, int32, uint64, int8, uint8) and JSON ``meta`` as a blob."""
    return b"".join(pieces_of(arrays, meta))


def pieces_of(arrays: Arrays, meta: Mapping[str, Any]) -> Pieces:
    """Encodes the same blob without copying arrays: the length, the header, and a view of each array's bytes."""
    header: dict[str, Any] = {"__metadata__": {"ferret": canonical_json(meta).decode()}}
    bodies: list[memoryview] = []
    offset = 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
        bodies.append(array.reshape(-1).view(np.uint8).data)
    text = canonical_json(header)
    text += b" " * (-len(text) % 8)
    return (struct.pack("<Q", len(text)) + text, *bodies)


def decode(blob: bytes | memoryview, header_bytes: int = MAX_HEADER_BYTES) -> tuple[dict[str, Array], dict[str, Any]]:
    """Decodes arrays (read-only views into ``blob``) and metadata.

    Raises ``contribution.malformed`` for anything that :func:`encode` would not have written: a header longer than
    ``header_bytes``, a wrong length, a gap or overlap, an unknown dtype, trailing bytes; ``contribution.non_finite``
    for NaN and infinities.
    """
    header, body = _split(blob, header_bytes)
    meta = _metadata(header.pop("__metadata__", None))
    arrays: dict[str, Array] = {}
    offset = 0
    for name in sorted(header):
        array, offset = _array(name, header[name], body, offset)
        arrays[name] = array
    if offset != len(body):
        raise malformed("body", len(body) - offset, "bytes are left over after the last array")
    return arrays, meta


def malformed(field: str, value: Any, message: str) -> FerretError:
    return FerretError.of_field("contribution.malformed", field, value, message)


def _split(blob: bytes | memoryview, header_bytes: int) -> tuple[dict[str, Any], memoryview]:
    if len(blob) < 8:
        raise malformed("length", len(blob), "a blob has at least 8 bytes")
    (size,) = struct.unpack_from("<Q", blob)
    if size > len(blob) - 8:
        raise malformed("header length", size, f"does not fit a blob of {len(blob)} bytes")
    if size > header_bytes:
        raise malformed("header length", size, f"is above {header_bytes}")
    try:
        header: object = json.loads(bytes(blob[8 : 8 + size]), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise malformed("header", size, "is not JSON") from error
    if not isinstance(header, dict):
        raise malformed("header", type(header).__name__, "is not a JSON object")
    return cast(dict[str, Any], header), memoryview(blob)[8 + size :]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _metadata(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or set(cast(dict[str, Any], value)) != {"ferret"}:
        raise malformed("__metadata__", None, "must be an object with a text under the only key 'ferret'")
    try:
        meta: object = json.loads(value["ferret"], object_pairs_hook=_unique)
    except (TypeError, ValueError, RecursionError) as error:
        raise malformed("__metadata__.ferret", None, "is not JSON text") from error
    if not isinstance(meta, dict):
        raise malformed("__metadata__", type(meta).__name__, "is not a JSON object")
    return cast(dict[str, Any], meta)


def _array(name: str, entry: Any, body: memoryview, offset: int) -> tuple[Array, int]:
    if not isinstance(entry, dict) or set(cast(dict[str, Any], entry)) != {"dtype", "shape", "data_offsets"}:
        raise malformed(name, None, "needs exactly dtype, shape and data_offsets")
    fields = cast(dict[str, Any], entry)
    dtype = _DTYPES.get(fields["dtype"]) if isinstance(fields["dtype"], str) else None
    if dtype is None:
        raise malformed(f"{name}.dtype", str(fields["dtype"]), f"is none of {', '.join(_DTYPES)}")
    shape = _sizes(f"{name}.shape", fields["shape"])
    end = offset + math.prod(shape) * dtype.itemsize
    if _sizes(f"{name}.data_offsets", fields["data_offsets"]) != (offset, end) or end > len(body):
        raise malformed(f"{name}.data_offsets", str(fields["data_offsets"]), f"expected [{offset}, {end}]")
    try:
        array = np.frombuffer(body[offset:end], dtype=dtype).reshape(shape)
    except ValueError as error:  # an array without elements may still have other dimensions that are too large
        raise malformed(f"{name}.shape", str(fields["shape"]), "is no shape of an array") from error
    require_finite(name, array)
    return array, end


def require_finite(name: str, array: Array) -> None:
    """Raises ``contribution.non_finite`` for NaN and infinities."""
    if array.dtype.kind != "f":
        return
    flat = array.reshape(-1)
    if not all(bool(np.isfinite(flat[place]).all()) for place in places(flat)):
        raise FerretError.of_field("contribution.non_finite", name, None, "holds NaN or infinity")


def _sizes(field: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or len(cast(list[Any], value)) > 8:
        raise malformed(field, str(value), "is not a short list of sizes")
    sizes = tuple(cast(list[Any], value))
    if not all(type(size) is int and 0 <= size < 2**48 for size in sizes):
        raise malformed(field, str(value), "is not a list of sizes")
    return sizes
