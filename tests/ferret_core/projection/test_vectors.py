"""The published test vectors, ``tests/vectors/projection.json``: any implementation must reproduce them.

``docs/concepts/projection.md`` says how to read them. The file never changes but with the format's version; then

    .venv/bin/python tests/ferret_core/projection/test_vectors.py

computes the answers of the inputs in it anew.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ferret_core.projection import FORMAT_VERSION
from ferret_core.projection.allocation import coordinates_within, split
from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis, letters
from ferret_core.projection.blocks import Block, cut
from ferret_core.projection.coordinate_encoding import KINDS
from ferret_core.projection.philox import philox
from ferret_core.projection.project import Projected, project
from ferret_core.projection.quantize import dequantize, quantize
from ferret_core.projection.stochastic_rounding import stochastic
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.wire import Contribution, ContributionMeta

FILE = Path(__file__).parents[2] / "vectors" / "projection.json"
VECTORS = json.loads(FILE.read_text())
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
Case = dict[str, Any]


def words(case: Case) -> Case:
    (c0, c1, c2, c3), (k0, k1) = ([int(word, 16) for word in case[name]] for name in ("counter", "key"))
    return {**case, "words": [f"{word:08x}" for word in philox((c0, c1, c2, c3), (k0, k1))]}


def entries(case: Case) -> Case:
    family, block = basis(case["basis"]), Block(case["block"], "w", case["d"])
    rows, columns = torch.tensor(case["rows"]), torch.tensor(case["columns"])
    V = family.entries(rows, columns, block, case["K"], int(case["seed"], 16))
    return {**case, "V": [[decimal(v) for v in row] for row in V.tolist()]}


def rounding(case: Case) -> Case:
    values = torch.tensor([int(bits, 16) for bits in case["values"]]).to(torch.int32).view(torch.float32)
    dtype = DTYPES[case["dtype"]]
    rounded = stochastic(values, dtype, int(case["seed"], 16), case["block"], case["start"]).view(torch.int16)
    return {**case, "rounded": [f"{bits & 0xFFFF:04x}" for bits in rounded.tolist()]}


def blocks(case: Case) -> Case:
    found = cut(case["parameters"], case["rule"], case["whole_up_to"])
    pieces = [[[piece.parameter, piece.begin, piece.length] for piece in block.pieces] for block in found]
    return {**case, "blocks": pieces, "whole": [block.id for block in found if block.whole]}


def allocation(case: Case) -> Case:
    sizes = {str(position): size for position, size in enumerate(case["sizes"])}
    found = cut(sizes, whole_up_to=case["whole_up_to"])
    K = coordinates_within(case["bytes"], case["coordinates"], found)
    return {**case, "K": K, "K_l": split(case["rule"], K, case["norms"], found)}


def model(case: Case) -> Case:
    found, family = blocks_of(case), basis(case["basis"])
    before, after = parameters(case["sizes"])
    terms: list[Case] = []
    applied: list[Projected] = []
    for position, term in enumerate(case["terms"]):
        seed = int(term["seed"], 16)
        gammas = project(before, after, found, family, case["K"], seed).coordinates
        terms.append({**term, "gamma": [decimal(x) for x in torch.cat(list(gammas)).tolist()]})
        applied.append(Projected(seed, coefficients(case["K"], position)))
    result: Case = {**case, "terms": terms, "weights": {}}
    for name, dtype in DTYPES.items():
        moved = {block: tensor.to(dtype, copy=True) for block, tensor in before.items()}
        reconstruct_(moved, found, family, applied, int(case["rounding"], 16))
        result["weights"][name] = digest(moved)
        if name == "float32":
            result["ends"] = [[decimal(tensor[i].item()) for i in (0, -1)] for tensor in moved.values()]
    return result


def coordinates(case: Case) -> Case:
    gammas = torch.tensor(case["gamma"]).split(case["K"])
    arrays = quantize(list(gammas), case["coordinates"], int(case["seed"], 16), case["whole"], case.get("room", 0))
    decoded = torch.cat([*dequantize(arrays, case["coordinates"], case["K"], case["whole"])])
    listed = {name: array.tobytes().hex() for name, array in arrays.items()}
    return {**case, "arrays": listed, "decoded": [decimal(x) for x in decoded.tolist()]}


def blob(case: Case) -> Case:
    arrays = {name: np.array(values, dtype=dtype) for name, (dtype, values) in case["arrays"].items()}
    contribution = Contribution(ContributionMeta.model_validate(case["metadata"]), arrays)
    return {**case, "metadata": contribution.meta.model_dump(mode="json"), "blob": contribution.encode().hex()}


ANSWERS = {
    "philox": words,
    "entries": entries,
    "rounding": rounding,
    "blocks": blocks,
    "allocation": allocation,
    "models": model,
    "coordinates": coordinates,
    "blobs": blob,
}


def blocks_of(case: Case) -> list[Block]:
    return cut({str(position): size for position, size in enumerate(case["sizes"])}, whole_up_to=case["whole_up_to"])


def parameters(sizes: list[int]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    before: dict[str, Tensor] = {}
    after: dict[str, Tensor] = {}
    for block, size in enumerate(sizes):
        n = 2654435761 * (torch.arange(size) + 1 + 1000 * block)
        before[str(block)] = ((n >> 8) % 2**11 - 2**10).float() / 2**10
        after[str(block)] = before[str(block)] - ((n >> 20) % 2**12 - 2**11).float() / 2**18
    return before, after


def coefficients(K: list[int], term: int) -> list[Tensor]:
    numbers = [2654435761 * (torch.arange(k) + 1 + 1000 * block + 500_000 * (term + 1)) for block, k in enumerate(K)]
    return [((n >> 20) % 2**12 - 2**11).float() / 2**16 for n in numbers]


def digest(tensors: dict[str, Tensor]) -> str:
    return digest_bytes(b"".join(tensor.view(torch.uint8).numpy().tobytes() for tensor in tensors.values()))


def decimal(x: float) -> float:
    """An fp32 number by nine digits, which lead back to it."""
    assert struct.unpack("f", struct.pack("f", x))[0] == x
    return float(f"{x:.9g}")


CASES = [(name, position) for name in ANSWERS for position in range(len(VECTORS[name]))]


@pytest.mark.parametrize(("name", "position"), CASES, ids=lambda value: str(value))
@pytest.mark.parametrize("kernel", ["reference", "auto"])
def test_vectors(name: str, position: int, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_KERNEL", kernel)
    case = VECTORS[name][position]
    answer = ANSWERS[name](case)
    for term, expected in zip(answer.get("terms", []), case.get("terms", []), strict=True):
        # Sums may be in any order.
        largest = max(map(abs, expected["gamma"]))
        assert term["gamma"] == pytest.approx(expected["gamma"], rel=1e-4, abs=1e-4 * largest)
        term["gamma"] = expected["gamma"]
    assert answer == case


def test_vectors_are_of_this_format_and_cover_everything() -> None:
    assert VECTORS["format"] == FORMAT_VERSION
    assert VECTORS.keys() - {"format"} == ANSWERS.keys()
    assert {case["basis"] for case in VECTORS["models"]} == {*letters()} - {"I"}
    assert any(case["whole_up_to"] for case in VECTORS["models"])
    assert sorted({case["basis"] for case in VECTORS["entries"]}) == letters()
    assert {case["coordinates"] for case in VECTORS["coordinates"]} == {*KINDS}
    assert {case["dtype"] for case in VECTORS["rounding"]} == {"bfloat16", "float16"}
    assert FILE.stat().st_size < 60_000


if __name__ == "__main__":
    answers = {name: [answer(case) for case in VECTORS[name]] for name, answer in ANSWERS.items()}
    sections = [
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(case) for case in cases) + "]"
        for name, cases in answers.items()
    ]
    FILE.write_text(f'{{"format": {FORMAT_VERSION},\n\n' + ",\n\n".join(sections) + "}\n")
