"""How vectors of blocks come to a kernel: many at once where it takes them, and as if each were alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from ferret_core.projection import block_views
from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import cut
from ferret_core.projection.kernels import named
from ferret_core.projection.kernels.base import ProjectionInput, UpdateInput
from ferret_core.projection.kernels.gpu.signed_buckets import Kernel
from ferret_core.projection.project import Projected, project
from tests.refusals import refused

SIZES = {"a": 6000, "b": 40, "c": 5000, "d": 70}
BLOCKS = cut(SIZES)
K = [9, 40, 7, 3]


def weights(seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(size, generator=generator) for name, size in SIZES.items()}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The sizes of the vectors of each call of the GPU's kernel, which the interpreter runs."""
    monkeypatch.setenv("FERRET_KERNEL", "gpu")
    seen, project_all, apply_all_ = list[list[int]](), Kernel.project_all, Kernel.apply_all_

    def projecting(self: Kernel, pairs: Sequence[ProjectionInput], seed: int) -> list[Tensor]:
        seen.append([pair.after.numel() for pair in pairs])
        return project_all(self, pairs, seed)

    def applying(self: Kernel, moves: Sequence[UpdateInput], rounding: int = 0) -> None:
        seen.append([move.weights.numel() for move in moves])
        apply_all_(self, moves, rounding)

    monkeypatch.setattr(Kernel, "project_all", projecting)
    monkeypatch.setattr(Kernel, "apply_all_", applying)
    return seen


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1 << 29, [[6000, 40, 5000, 70]]), (6100, [[6000, 40], [5000, 70]]), (1, [[6000], [40], [5000], [70]])],
)
@pytest.mark.heavy
def test_vectors_are_gathered_up_to_a_number_of_elements(
    most: int, expected: list[list[int]], calls: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_views, "MOST", most)
    before, after = weights(1), weights(2)
    sent = project(before, after, BLOCKS, basis("G"), K, seed=5)
    assert calls == expected
    calls.clear()
    reconstruct_(after, BLOCKS, basis("G"), [sent])
    assert calls == expected
    reference, moved = named("reference", basis("G")), weights(2)
    for block, name, gamma in zip(BLOCKS, SIZES, sent.coordinates, strict=True):
        alone = reference.project(before[name], moved[name], block, len(gamma), 5)
        assert torch.allclose(gamma, alone, rtol=1e-5, atol=1e-4)
    reference_model = moved
    monkeypatch.setenv("FERRET_KERNEL", "reference")
    reconstruct_(reference_model, BLOCKS, basis("G"), [sent])
    assert all(torch.equal(after[name], reference_model[name]) for name in SIZES)


def test_a_block_that_is_sent_whole_goes_on_the_identity_alone(calls: list[list[int]]) -> None:
    blocks = [block._replace(whole=block.size == 40) for block in BLOCKS]
    after = weights(2)
    sent = project(weights(1), after, blocks, basis("G"), K, seed=5)
    assert torch.equal(sent.coordinates[1], weights(1)["b"] - after["b"])
    reconstruct_(after, blocks, basis("G"), [sent])
    assert calls == [[6000, 5000, 70]] * 2
    assert torch.allclose(after["b"], 2 * weights(2)["b"] - weights(1)["b"], atol=1e-5)


def test_blocks_that_are_not_sent_are_not_looked_at(calls: list[list[int]]) -> None:
    sent = project(weights(1), weights(2), BLOCKS, basis("G"), [9, 0, 0, 3], seed=5)
    assert [len(gamma) for gamma in sent.coordinates] == [9, 0, 0, 3]
    reconstruct_(weights(2), BLOCKS, basis("G"), [Projected(5, sent.coordinates)])
    assert calls[0] == [6000, 70]


def test_what_another_model_has_not_is_named() -> None:
    with refused("projection.invalid", "cut the blocks from this model"):
        project({}, weights(2), BLOCKS, basis("G"), K, seed=5)
