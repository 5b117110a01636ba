from __future__ import annotations

import pytest
import torch

from ferret_core.projection.bases import basis
from ferret_core.projection.bases.hadamard import STRETCH, rotate, rotate_back
from ferret_core.projection.blocks import Block

DIMENSIONS = [1, 4095, 4096, 4097, 20_000]


def vector(d: int) -> torch.Tensor:
    return torch.randn(d, generator=torch.Generator().manual_seed(d)) ** 3


@pytest.mark.parametrize("d", [*DIMENSIONS, STRETCH + 5])
def test_it_can_be_undone_and_keeps_the_length(d: int) -> None:
    x = vector(d)
    y = rotate(x, seed=7)
    assert y.shape == (-(-d // 4096), 4096)
    assert float(y.double().norm()) == pytest.approx(float(x.double().norm()), rel=1e-6)
    torch.testing.assert_close(rotate_back(y, 7, d), x, rtol=0, atol=1e-5 * float(x.abs().max()))


def test_it_is_that_of_the_family_h_with_every_coordinate() -> None:
    x, gamma = vector(3 * 4096), torch.zeros(3 * 4096)
    basis("H").project_into(gamma, x, Block(0, "w", len(x)), 0, seed=5)
    torch.testing.assert_close(rotate(x, 5).view(-1), gamma, rtol=0, atol=0)


def test_another_seed_is_another_rotation() -> None:
    x = torch.randn(4096, generator=torch.Generator().manual_seed(1))
    cosine = torch.nn.functional.cosine_similarity(rotate(x, 1), rotate(x, 2)).item()
    assert abs(cosine) < 0.1


def test_entries_become_alike() -> None:
    """A heavy-tailed vector has a kurtosis of dozens, its rotation about the normal one of 3."""
    x = torch.randn(64 * 4096, generator=torch.Generator().manual_seed(1)) ** 3
    y = rotate(x, 3)
    normal = y / y.square().mean(1, keepdim=True).sqrt()
    assert float((x**4).mean() / x.square().mean() ** 2) > 30
    assert float((normal**4).mean()) == pytest.approx(3, rel=0.02)


def test_the_same_bits_for_any_number_of_threads() -> None:
    x = vector(100_000)
    one = rotate(x, 2)
    torch.set_num_threads(3)
    assert torch.equal(rotate(x, 2), one)
    assert torch.equal(rotate_back(one, 2, len(x)), rotate_back(one, 2, len(x)))
