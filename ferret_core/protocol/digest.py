"""BLAKE3, Ferret's one hash: model digests, file and blob names, ledger links and derived seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from blake3 import blake3


def digest_bytes(data: bytes) -> str:
    """BLAKE3-256 of the bytes, 64 lower-case hexadecimal digits."""
    return blake3(data).hexdigest()


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
