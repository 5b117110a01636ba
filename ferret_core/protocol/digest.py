"""BLAKE3, Ferret's only hash: model digests, file and blob names, ledger links and derived seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

from blake3 import blake3

from ferret_core.protocol.buffers import Pieces, size_of

CHUNK_BYTES = 16 << 20


def digest_bytes(data: bytes | memoryview) -> str:
    """Returns the BLAKE3-256 of the bytes, 64 lower-case hexadecimal digits."""
    return blake3(data).hexdigest()


def digest_pieces(pieces: Pieces) -> str:
    """Returns the BLAKE3-256 of the concatenated pieces; long ones are hashed on all cores."""
    hasher = blake3(max_threads=blake3.AUTO if size_of(pieces) > CHUNK_BYTES else 1)
    for piece in pieces:
        hasher.update(piece)
    return hasher.hexdigest()


def digest_stream(file: BinaryIO) -> str:
    """Returns the BLAKE3-256 of the rest of the file, on all cores.

    It reads instead of mapping: an unreadable sector raises an error here, but would kill the process under a memory
    map.
    """
    hasher = blake3(max_threads=blake3.AUTO)
    while chunk := file.read(CHUNK_BYTES):
        hasher.update(chunk)
    return hasher.hexdigest()


def digest_file(path: Path) -> str:
    """Returns the BLAKE3-256 of the file's bytes, memory-mapped and on all cores."""
    return blake3(max_threads=blake3.AUTO).update_mmap(path).hexdigest()


def canonical_json(value: Any) -> bytes:
    """Encodes a value in its one canonical form (sorted keys, no blanks, UTF-8): equal values have equal digests."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest_json(value: Any) -> str:
    return digest_bytes(canonical_json(value))


def derive_seed(*parts: str | int) -> int:
    """Derives a 64-bit seed from its purpose, e.g. ``derive_seed(spec.seed, "data", round, participant)``."""
    return int.from_bytes(blake3(canonical_json(list(parts))).digest(8), "little")
