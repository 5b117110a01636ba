"""Long arrays are gone through in pieces, and a mapped file takes no more memory than one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ferret_core.protocol.buffers import PIECE_BYTES, places, size_of
from ferret_core.protocol.digest import digest_bytes, digest_pieces

LENGTHS = [0, 1, PIECE_BYTES // 4 - 1, PIECE_BYTES // 4, PIECE_BYTES // 4 + 1, PIECE_BYTES]


@pytest.mark.parametrize("length", LENGTHS)
def test_the_places_cover_an_array_once_in_order(length: int) -> None:
    vector = np.arange(length, dtype=np.float32)
    parts = [vector[place] for place in places(vector)]
    assert all(0 < part.nbytes <= PIECE_BYTES for part in parts)
    np.testing.assert_array_equal(np.concatenate([vector[:0], *parts]), vector)


def test_pieces_have_the_size_and_digest_of_the_whole() -> None:
    numbers = np.arange(6 << 20, dtype=np.float32)
    pieces = (b"head", memoryview(numbers).cast("B"), b"")
    whole = b"".join(pieces)
    assert size_of(pieces) == len(whole)
    assert digest_pieces(pieces) == digest_bytes(whole)


# A process of its own: what others have held before would hide what this holds.
LOOK = """
import re, sys
from pathlib import Path

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.buffers import mapped
from ferret_core.protocol.wire import decode
from ferret_core.algorithms.configs.norms import norm


def held(what):
    return int(re.search(rf"{what}:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10


with open(sys.argv[1], "rb") as file:
    before = held("VmHWM")
    array = decode(mapped(file))[0]["update"]
print(array.shape[0], norm(array), held("VmHWM") - before)
"""


@pytest.mark.heavy
def test_a_mapped_contribution_is_checked_and_measured_in_a_few_megabytes(tmp_path: Path) -> None:
    numbers = np.full(96 << 20, 0.5, dtype=np.float16)  # 192 MiB
    path = tmp_path / "blob"
    with path.open("wb") as file:
        from ferret_core.protocol.wire import pieces_of

        file.writelines(pieces_of({"update": numbers}, {}))
    done = subprocess.run([sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True, check=True)
    count, norm, grown = done.stdout.split()
    assert (int(count), float(norm)) == (96 << 20, 0.5 * (96 << 20) ** 0.5)
    assert int(grown) < 100, "MiB"
