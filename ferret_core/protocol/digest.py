"""BLAKE3, Ferret's one hash: model digests, file and blob names, ledger links and derived seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

from blake3 import blake3

from ferret_core.protocol.buffers import Pieces, size_of

CHUNK_BYTES = 16 << 20


def digest_bytes(data: bytes | memoryview) -> str:
    """BLAKE3-256 of the bytes, 64 lower-case hexadecimal digits."""
    return blake3(data).hexdigest()


def digest_pieces(pieces: Pieces) -> str:
    """BLAKE3-256 of all of the pieces, one after the other; of what is long on all cores."""
    hasher = blake3(max_threads=blake3.AUTO if size_of(pieces) > CHUNK_BYTES else 1)
    for piece in pieces:
        hasher.update(piece)
    return hasher.hexdigest()


def digest_stream(file: BinaryIO) -> str:
    """BLAKE3-256 of what is left of the file, on all cores.

    By reading: a sector that cannot be read is an error here, and would kill the process under a memory map.
    """
    hasher = blake3(max_threads=blake3.AUTO)
    while chunk := file.read(CHUNK_BYTES):
        hasher.update(chunk)
    return hasher.hexdigest()


def digest_file(path: Path) -> str:
    """BLAKE3-256 of the file's bytes, memory-mapped and on all cores."""
    return blake3(max_threads=blake3.AUTO).update_mmap(path).hexdigest()


def canonical_json(value: Any) -> bytes:
    """One spelling per value (sorted keys, no blanks, UTF-8), so that equal values have equal digests."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest_json(value: Any) -> str:
    return digest_bytes(canonical_json(value))


def derive_seed(*parts: str | int) -> int:
    """A 64-bit seed from what it is for, e.g. ``derive_seed(spec.seed, "data", round, participant)``."""
    return int.from_bytes(blake3(canonical_json(list(parts))).digest(8), "little")
