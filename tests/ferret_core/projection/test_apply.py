"""Moving a model by its coordinates: whole or in parts, at once or in turns, to the same bits."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from ferret_core.projection import apply as module
from ferret_core.projection.apply import moved_to, reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.block_views import FLOATS
from ferret_core.projection.blocks import HeldRange, blocks_of
from ferret_core.projection.project import Projected, project
from tests.ferret_core.projection.sample import BLOCKS, COUNTS, as_bytes, every_letter, parameters
from tests.tiers import slow


class Collected:
    """A target with one of ``count`` ranges of every parameter: what it is sent must come in order and be all of it."""

    def __init__(self, whole: Mapping[str, Tensor], place: int, count: int) -> None:
        cuts = {
            name: HeldRange(place * w.numel() // count, (place + 1) * w.numel() // count) for name, w in whole.items()
        }
        self.held = {name: held for name, held in cuts.items() if held.begin < held.end}
        self.moved: dict[str, Tensor] = {}

    def write(self, parameter: str, begin: int, elements: Tensor) -> None:
        before = self.moved.get(parameter, elements[:0])
        assert begin == self.held[parameter].begin + len(before)
        self.moved[parameter] = torch.cat([before, elements])


@every_letter
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rule", ["tensor", "grouped", 3])
@pytest.mark.heavy
def test_workers_that_share_out_the_elements_get_the_same_weights(letter: str, dtype: torch.dtype, rule: Any) -> None:
    alone, blocks = parameters(1, dtype), blocks_of(parameters(1), rule)
    K = [min(9, block.size) for block in blocks]
    terms = [project(alone, parameters(n), blocks, basis(letter), K, seed=n) for n in (2, 3)]
    parts = [Collected(alone, place, 3) for place in range(3)]
    for part in parts:
        with moved_to(part):
            reconstruct_(alone, blocks, basis(letter), terms, rounding=8)
    reconstruct_(alone, blocks, basis(letter), terms, rounding=8)
    for name, weights in alone.items():
        joined = torch.cat([part.moved[name] for part in parts if name in part.moved])
        assert as_bytes([joined]) == as_bytes([weights])


def all_at_once(counts: Sequence[int], most: int) -> list[slice]:
    return [slice(0, len(counts))]


@every_letter
@pytest.mark.parametrize("dtype", [torch.float32, *slow(torch.bfloat16, torch.float16)])
@pytest.mark.heavy
def test_terms_of_more_coordinates_than_weights_go_in_turns_to_the_same_bits(
    letter: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = parameters(1), parameters(2)
    K = [max(1, block.size // 2) if letter in "GH" else min(block.size, 20) for block in BLOCKS]
    terms = [project(before, after, BLOCKS, basis(letter), K, seed) for seed in range(7)]
    moved, at_once = ({name: tensor.to(dtype, copy=True) for name, tensor in before.items()} for _ in range(2))
    counts = [len(terms) * count for count in K]
    assert any(count > block.size for count, block in zip(counts, BLOCKS, strict=True))
    monkeypatch.setattr(module, "STRETCH", 64)
    reconstruct_(moved, BLOCKS, basis(letter), terms, 5)
    monkeypatch.setattr(module, "_turns", all_at_once)
    reconstruct_(at_once, BLOCKS, basis(letter), terms, 5)
    assert as_bytes(list(moved.values())) == as_bytes(list(at_once.values()))


class Made(Sequence[Tensor]):
    """Coordinates that are made when they are asked for, and how many were there at once."""

    def __init__(self) -> None:
        self.there, self.most = weakref.WeakSet[Tensor](), 0

    def __len__(self) -> int:
        return len(BLOCKS)

    def __getitem__(self, position: Any) -> Any:
        made = torch.ones(COUNTS["R"][position])
        self.there.add(made)
        self.most = max(self.most, len(self.there))
        return made


@pytest.mark.parametrize("letter", ["G", "R"])
def test_coordinates_of_a_block_are_let_go_before_those_of_the_next_but_one(letter: str) -> None:
    sent = Made()
    reconstruct_(parameters(1), BLOCKS, basis(letter), [Projected(1, sent)])
    assert sent.most <= 2 < len(BLOCKS)
