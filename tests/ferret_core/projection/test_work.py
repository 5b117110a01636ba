"""What a reconstruction costs, in random entries drawn by the reference kernel: each is multiplied and added once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import pytest
import torch
from torch import Tensor

from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis, dense_signs, signed_buckets, truncated_normal
from ferret_core.projection.blocks import Block, cut
from ferret_core.projection.project import Projected, project

Count = Callable[[ModuleType, str], list[int]]
D, K = 1 << 16, 64


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Count:
    """``counted(module, name)``: a list that grows by the size of what that function of the module returns."""
    monkeypatch.setenv("FERRET_KERNEL", "reference")

    def count(module: ModuleType, name: str) -> list[int]:
        drawn, draw = list[int](), getattr(module, name)

        def counting(*arguments: object, **options: object) -> Tensor:
            values = draw(*arguments, **options)
            drawn.append(values.numel())
            return values

        monkeypatch.setattr(module, name, counting)
        return drawn

    return count


def model_of(sizes: Sequence[int]) -> tuple[dict[str, Tensor], list[Block]]:
    names = [f"w{i}" for i in range(len(sizes))]
    return {name: torch.ones(size) for name, size in zip(names, sizes, strict=True)}, cut(
        dict(zip(names, sizes, strict=True))
    )


def reconstruct(letter: str, sizes: Sequence[int], counts: Sequence[int]) -> None:
    parameters, blocks = model_of(sizes)
    coordinates = [torch.ones(count) for count in counts]
    reconstruct_(parameters, blocks, basis(letter), [Projected(1, coordinates)])


@pytest.mark.parametrize("L", [1, 2, 8, 64])
@pytest.mark.parametrize(("letter", "module"), [("T", truncated_normal), ("R", dense_signs)])
def test_proposition_1_equal_blocks_cost_one_lth(counted: Count, letter: str, module: ModuleType, L: int) -> None:
    drawn = counted(module, {"T": "draw", "R": "sign_bits"}[letter])
    reconstruct(letter, [D // L] * L, [K // L] * L)
    assert sum(drawn) == D * K // L


@pytest.mark.parametrize(
    ("sizes", "counts"), [([4096, 8192, 53_248], [40, 20, 4]), ([64, 4096, 61_376], [1, 1, 62]), ([D - 4, 4], [63, 1])]
)
def test_proposition_1_blocks_cost_the_sum_of_their_products(
    counted: Count, sizes: list[int], counts: list[int]
) -> None:
    """Σ d_l K_l, always less than d·K; of projection as of reconstruction."""
    drawn = counted(truncated_normal, "draw")
    reconstruct("T", sizes, counts)
    assert sum(drawn) == sum(d * k for d, k in zip(sizes, counts, strict=True)) < D * K
    drawn.clear()
    before, blocks = model_of(sizes)
    project(before, {name: 2 * weights for name, weights in before.items()}, blocks, basis("T"), counts, seed=1)
    assert sum(drawn) == sum(d * k for d, k in zip(sizes, counts, strict=True))


@pytest.mark.parametrize("L", [1, 8, 16])
@pytest.mark.parametrize("K", [64, 4096])
def test_signed_buckets_cost_one_sign_an_element_whatever_k_and_l(counted: Count, L: int, K: int) -> None:
    drawn = counted(signed_buckets, "sign_bits")
    reconstruct("G", [D // L] * L, [K // L] * L)
    assert sum(drawn) == D
