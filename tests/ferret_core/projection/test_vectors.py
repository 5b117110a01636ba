"""The published test vectors of the projection format: any implementation, in any language, must reproduce them.

``tests/vectors/projection.json`` never changes; a new format version adds a file. How to read it:

- Block l of a case has ``sizes[l]`` elements; with n = 2654435761·(i + 1 + 1000·l), element i starts at
  before = (⌊n/2⁸⌋ mod 2¹¹ − 2¹⁰)/2¹⁰ and ends at before − Δ, Δ = (⌊n/2²⁰⌋ mod 2¹² − 2¹¹)/2¹⁸, all exact in fp32.
- ``gamma``: the coordinates of all blocks. G's are exact; T's depend on the order of the sum, which is free: compare
  to 1e-4 of the largest.
- ``coefficients``: what is applied, γ rounded to half precision, so that it does not depend on the order of sums.
- ``weights``: BLAKE3 of the little-endian fp32 bytes of all blocks after applying the coefficients. To the bit.
- ``gamma_digest``: BLAKE3 of the little-endian fp32 coordinates of this implementation, which pins its own order.
- ``signs``: the first 64 signs of block 0; ``entries``: some [i, k, V[i, k]] ≠ 0 of the last block.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ferret_core.projection import FORMAT_VERSION
from ferret_core.projection.bases import basis, letters
from ferret_core.projection.blocks import blocks_of
from ferret_core.projection.project import apply_, project
from ferret_core.projection.signs import sign_bits
from ferret_core.protocol.digest import digest_bytes

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "projection.json").read_text())
CASES = VECTORS["cases"]


def model(sizes: list[int]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    before: dict[str, Tensor] = {}
    after: dict[str, Tensor] = {}
    for block, size in enumerate(sizes):
        n = 2654435761 * (torch.arange(size) + 1 + 1000 * block)
        before[str(block)] = ((n >> 8) % 2**11 - 2**10).float() / 2**10
        after[str(block)] = before[str(block)] - ((n >> 20) % 2**12 - 2**11).float() / 2**18
    return before, after


def digest(tensors: list[Tensor]) -> str:
    return digest_bytes(b"".join(tensor.numpy().astype("<f4").tobytes() for tensor in tensors))


def result(case: dict[str, Any]) -> dict[str, Any]:
    before, after = model(case["sizes"])
    family, seed, last = basis(case["basis"]), int(case["seed"], 16), blocks_of(before)[-1]
    gammas = project(before, after, family, case["K"], seed)
    rows, columns = torch.arange(0, last.size, last.size // 4), torch.arange(case["K"][-1])
    entries = family.entries(rows, columns, last, case["K"][-1], seed)
    coefficients = [gamma.half().float() for gamma in gammas]
    apply_(before, family, [(seed, coefficients)])
    return {
        **case,
        "signs": "".join("+-"[bit < 0] for bit in sign_bits(seed, 0, 0, 64, torch.device("cpu")).tolist()),
        "entries": [
            [i, k, float(entries[row, column])]
            for row, i in enumerate(rows.tolist())
            for column, k in enumerate(columns.tolist())
            if entries[row, column] != 0
        ][:12],
        "gamma": torch.cat(gammas).tolist(),
        "gamma_digest": digest(gammas),
        "coefficients": torch.cat(coefficients).tolist(),
        "weights": digest(list(before.values())),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['basis']}-{case['seed']}")
def test_vectors(case: dict[str, Any]) -> None:
    assert result(case) == case


def test_vectors_are_of_this_format_and_cover_every_basis() -> None:
    assert VECTORS["format"] == FORMAT_VERSION
    assert sorted({case["basis"] for case in CASES}) == letters()
