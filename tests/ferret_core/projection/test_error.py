"""Reconstruction error of every family: unbiased (Theorem 1), with the error and spread that theory gives."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block

pytestmark = pytest.mark.heavy
SEEDS = 120
INDEPENDENT = "RT"  # families whose entries are independent
SHAPES = ["flat", "heavy-tailed", "low rank"]


def update(shape: str, d: int) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    match shape:
        case "flat":
            return torch.randn(d, generator=generator)
        case "heavy-tailed":
            return torch.randn(d, generator=generator) ** 5
        case "columns":
            return (torch.randn(d // 512, 1, generator=generator) * torch.randn(512, generator=generator) ** 5).view(-1)
        case _:
            rank2 = torch.randn(-(-d // 32), 2, generator=generator) @ torch.randn(2, 32, generator=generator)
            return rank2.view(-1)[:d]


def reconstruction(letter: str, delta: Tensor, K: int, seed: int) -> Tensor:
    block, gamma = Block(2, "w", len(delta)), torch.zeros(K)
    basis(letter).project_into(gamma, delta, block, 0, seed)
    return basis(letter).reconstruct(gamma, len(delta), block, 0, seed)


def reconstructions(letter: str, delta: Tensor, K: int) -> Tensor:
    """One reconstruction per seed, fp64 (SEEDS, d)."""
    return torch.stack([reconstruction(letter, delta, K, seed).double() for seed in range(SEEDS)])


def error(estimate: Tensor, delta: Tensor) -> float:
    return float((estimate - delta).square().sum() / delta.square().sum())


def expected_error(letter: str, d: int, K: int) -> float:
    """E‖Δ~ − Δ‖² / ‖Δ‖²: (d − 2 + κ)/K for independent entries, d/K − 1 for orthogonal columns of equal size."""
    return (d - 2 + basis(letter).moments(d).kappa) / K if letter in INDEPENDENT else d / K - 1


# Beside the usual ones: one coordinate, one per element, and H in chunks of 4096, 256 and 32 elements at once.
CASES = [
    *[("T", 512, 16), ("T", 64, 32), ("T", 64, 100), ("R", 512, 16), ("R", 64, 32), ("R", 256, 1)],
    *[("G", 4096, 256), ("G", 4096, 16), ("G", 512, 512), ("G", 2048, 1)],
    *[("H", 4096, 256), ("H", 4096, 16), ("H", 512, 512), ("H", 2048, 1), ("H", 4384, 548)],
]


@pytest.mark.parametrize(("letter", "d", "K"), CASES)
@pytest.mark.parametrize("shape", SHAPES)
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


@pytest.mark.parametrize("letter", ["G", "H"])
@pytest.mark.parametrize("shape", ["flat", "columns"])
def test_the_error_spreads_no_more_than_with_independent_entries(letter: str, shape: str) -> None:
    """d/K fixes the mean; the mixing keeps bad seeds rare. Stripes as long as the columns repeat need rotations."""
    d, K = 4096, 64
    delta = update(shape, d)
    spread = {
        name: torch.tensor([error(estimate, delta.double()) for estimate in reconstructions(name, delta, K)]).std()
        for name in (letter, "R")
    }
    assert float(spread[letter]) < 1.25 * float(spread["R"])


def test_every_coordinate_of_h_stands_for_its_stratum() -> None:
    """K that does not divide d: strata of two sizes n, and the error Σ n² / d − 1."""
    d, K = 544, 363
    sizes = [(k + 1) * d // K - k * d // K for k in range(K)]
    delta = update("flat", d)
    errors = torch.tensor([error(estimate, delta.double()) for estimate in reconstructions("H", delta, K)])
    expected = sum(n * n for n in sizes) / d - 1
    assert float(errors.mean()) == pytest.approx(expected, abs=5 * float(errors.std()) / math.sqrt(SEEDS))


@pytest.mark.parametrize("letter", ["G", "H", "I"])
@pytest.mark.parametrize("d", [1, 2, 77, 1000, 4097])
def test_as_many_coordinates_as_elements_lose_nothing(letter: str, d: int) -> None:
    delta = update("heavy-tailed", d)
    assert torch.allclose(reconstruction(letter, delta, d, seed=1), delta, rtol=0, atol=1e-6 * float(delta.norm()))


@pytest.mark.parametrize("letter", ["T", "R", "G", "H"])
def test_own_seeds_average_the_noise_and_a_shared_seed_averages_the_updates(letter: str) -> None:
    """N equal updates: own seeds leave 1/N of the error, one shared seed leaves all of it."""
    d, K, N, rounds = 512, 32, 8, 30
    delta = update("flat", d)

    def mean_error(seeds: list[list[int]]) -> float:
        means = [sum(reconstruction(letter, delta, K, seed) for seed in row) / N for row in seeds]
        return sum(error(torch.as_tensor(mean), delta) for mean in means) / rounds

    error_ = expected_error(letter, d, K)
    assert mean_error([[n] * N for n in range(rounds)]) == pytest.approx(error_, rel=0.15)
    assert mean_error([list(range(100 * n, 100 * n + N)) for n in range(rounds)]) == pytest.approx(error_ / N, rel=0.15)
