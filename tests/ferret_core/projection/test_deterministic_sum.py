import math

import pytest
import torch

from ferret_core.projection.deterministic_sum import PairwiseSum, fold, lanes, pairwise


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_sums_are_sums() -> None:
    values = noise(5000).double()
    exact = math.fsum(values.tolist())
    assert float(pairwise(lanes(values))) == pytest.approx(exact, rel=1e-12)
    assert float(fold(values[:4096])) == pytest.approx(math.fsum(values[:4096].tolist()), rel=1e-12)
    assert torch.allclose(pairwise(noise(7, 3)), noise(7, 3).sum(0))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 13, 100])
@pytest.mark.parametrize("chunk", [1, 2, 8, 64])
def test_chunks_do_not_change_the_bits(count: int, chunk: int) -> None:
    rows = noise(count, 5) * 10.0 ** noise(count, 1)
    sums = PairwiseSum()
    for start in range(0, count, chunk):
        sums.add(rows[start : start + chunk])
    assert sums.total().tolist() == pairwise(rows).tolist()


def test_an_odd_last_row_keeps_the_sign_of_zero() -> None:
    rows = torch.full((3, 1), -0.0)
    assert math.copysign(1, float(pairwise(rows))) == -1
