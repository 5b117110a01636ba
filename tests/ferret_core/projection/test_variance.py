import math

import mpmath
import pytest
import torch

from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block
from ferret_core.projection.variance import truncated_normal_moments


def printed_form(d: int) -> tuple[float, float]:
    """ρ as the paper prints it and κ of the same distribution, in 60 digits."""
    with mpmath.workdps(60):
        e = 1 / mpmath.sqrt(d)
        density = mpmath.npdf(e) / (mpmath.ncdf(e) - mpmath.mpf(1) / 2)
        rho = 1 - e * density
        fourth = 3 * rho - e**3 * density
        return float(rho), float(fourth / rho**2)


@pytest.mark.parametrize("d", [1, 2, 10, 100, 3200, 10**8, 3 * 10**9])
def test_moments_are_those_of_the_papers_distribution(d: int) -> None:
    rho, kappa = truncated_normal_moments(d)
    exact_rho, exact_kappa = printed_form(d)
    assert rho == pytest.approx(exact_rho, rel=4.3e-4 / d**3 + 1e-14)
    assert kappa == pytest.approx(exact_kappa, rel=9.3e-3 / d**2 + 1e-14)


@pytest.mark.parametrize("d", [1, 3, 64])
def test_moments_are_exact_for_what_is_drawn_however_small_the_block(d: int) -> None:
    columns = torch.arange(300_000 // d)
    drawn = basis("T").entries(torch.arange(d), columns, Block(0, "w", d), len(columns), 1).double()
    rho, kappa = truncated_normal_moments(d)
    spread = math.sqrt((kappa - 1) / drawn.numel())
    assert float((drawn**2).mean()) == pytest.approx(rho, rel=4 * spread)
    assert float((drawn**4).mean()) / rho**2 == pytest.approx(kappa, rel=0.02)


@pytest.mark.parametrize("d", [10, 100, 3200, 10**7])
def test_entries_follow_the_truncated_normal_distribution(d: int) -> None:
    """Its distribution function must lead back to the uniform number u that each entry was drawn from."""

    def drawn(size: int) -> torch.Tensor:
        block = Block(0, "w", size)
        return basis("T").entries(torch.tensor([0]), torch.arange(20_000), block, 20_000, 3)[0].double() * size**0.5

    v, u = drawn(d), drawn(2**40)  # in so large a block an entry is u·ε to the last bit
    ends = 1 / math.sqrt(2 * d)
    assert float((torch.special.erf(v * ends) / math.erf(ends) - u).abs().max()) < 6e-3 / d**2 + 2e-7
    assert float(v.abs().max()) <= 1


@pytest.mark.parametrize("d", [1, 13, 777, 4096, 4097, 5 * 4096 + 349])
def test_hadamard_moments_are_those_of_all_columns(d: int) -> None:
    """At K = d every place has its column, so the sums run over whole chunks: 1/m, m² times in a chunk of m."""
    lengths = [4096] * (d // 4096) + [1 << bit for bit in range(12) if d >> bit & 1]
    entries = sum(m * m for m in lengths)
    rho, kappa = basis("H").moments(d)
    assert rho == pytest.approx(sum(m * m / m for m in lengths) / entries, rel=1e-14)
    assert kappa == pytest.approx(sum(m * m / m**2 for m in lengths) / entries / rho**2, rel=1e-14)
    if d < 1000:
        V = basis("H").entries(torch.arange(d), torch.arange(d), Block(0, "w", d), d, 1).double()
        assert int((V != 0).sum()) == entries
        assert float(V.square().sum()) / entries == pytest.approx(rho, rel=1e-6)


def test_moments_of_a_huge_block_take_no_time() -> None:
    assert basis("H").moments(2**33) == (1 / 4096, 1)
