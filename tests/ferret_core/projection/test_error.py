"""Reconstruction error of T and G: unbiased (Theorem 1), with the mean squared error and cosine that theory gives."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block

SEEDS = 200


def update(shape: str, d: int) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    match shape:
        case "flat":
            return torch.randn(d, generator=generator)
        case "heavy-tailed":
            return torch.randn(d, generator=generator) ** 5
        case _:
            return (torch.randn(d // 32, 2, generator=generator) @ torch.randn(2, 32, generator=generator)).view(-1)


def reconstructions(letter: str, delta: Tensor, K: int) -> Tensor:
    """One reconstruction per seed, fp64 (SEEDS, d)."""
    block, family, zero = Block(2, "w", len(delta)), basis(letter), torch.zeros_like(delta)
    rows: list[Tensor] = []
    for seed in range(SEEDS):
        estimate = zero.clone()
        family.apply_(estimate, block, [(seed, -family.project(delta, zero, block, K, seed))])
        rows.append(estimate.double())
    return torch.stack(rows)


def expected_error(letter: str, d: int, K: int) -> float:
    """E‖Δ~ − Δ‖² / ‖Δ‖²: (d − 2 + κ)/K for independent entries, d/K − 1 for signed buckets of equal size."""
    return (d - 2 + basis("T").moments(d).kappa) / K if letter == "T" else d / K - 1


CASES = [("T", 512, 16), ("T", 64, 32), ("G", 4096, 256), ("G", 4096, 16), ("G", 512, 512), ("G", 2048, 1)]


@pytest.mark.parametrize(("letter", "d", "K"), CASES)
@pytest.mark.parametrize("shape", ["flat", "heavy-tailed", "low rank"])
def test_error_and_bias(letter: str, d: int, K: int, shape: str) -> None:
    delta = update(shape, d)
    exact = delta.double()
    square = float(exact @ exact)
    estimates = reconstructions(letter, delta, K)

    errors = (estimates - exact).square().sum(1) / square
    noise = 5 * float(errors.std()) / math.sqrt(SEEDS) + 1e-6
    assert float(errors.mean()) == pytest.approx(expected_error(letter, d, K), abs=noise)

    along = estimates @ exact / square
    assert float(along.mean()) == pytest.approx(1, abs=5 * float(along.std()) / math.sqrt(SEEDS) + 1e-6)
    # What is left across Δ must shrink with the number of seeds: a bias would stay.
    across = (estimates.mean(0) - exact).square().sum() / square
    assert float(across) < 2 * expected_error(letter, d, K) / SEEDS + 1e-6


@pytest.mark.parametrize(("letter", "d", "K"), [("T", 512, 16), ("G", 4096, 256), ("G", 4096, 1024)])
def test_cosine(letter: str, d: int, K: int) -> None:
    delta = update("flat", d).double()
    estimates = reconstructions(letter, delta.float(), K)
    cosine = torch.nn.functional.cosine_similarity(estimates, delta[None], dim=1)
    expected = math.sqrt(K / (K + d - 2 + basis("T").moments(d).kappa)) if letter == "T" else math.sqrt(K / d)
    assert float(cosine.mean()) == pytest.approx(expected, rel=0.03)


def test_own_seeds_average_the_noise_and_a_shared_seed_averages_the_updates() -> None:
    """N equal updates: own seeds leave 1/N of the error, one shared seed leaves all of it."""
    d, K, N = 4096, 256, 8
    family, block, delta = basis("G"), Block(0, "w", d), update("flat", d)
    zero = torch.zeros(d)

    def error(seeds: list[int]) -> float:
        estimate = zero.clone()
        terms = [(seed, -family.project(delta, zero, block, K, seed) / N) for seed in seeds]
        family.apply_(estimate, block, terms)
        return float((estimate - delta).square().sum() / delta.square().sum())

    own = sum(error(list(range(100 * n, 100 * n + N))) for n in range(40)) / 40
    shared = sum(error([n] * N) for n in range(40)) / 40
    assert shared == pytest.approx(d / K - 1, rel=0.1)
    assert own == pytest.approx((d / K - 1) / N, rel=0.1)
