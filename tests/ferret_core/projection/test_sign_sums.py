"""The sums of participants' integers give the mean of their signs, with their mean scale."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ferret_core.projection import quantize, sign_sums

K = [5, 1, 10]
UNITS = np.array([0.5, 2.0, 0.75])


def sent(seed: int) -> dict[str, np.ndarray]:
    draws = torch.Generator().manual_seed(seed)
    return quantize.quantize([torch.randn(count, generator=draws) for count in K], "sign")


def sums_of(contributions: list[dict[str, np.ndarray]], losses: list[float | None]) -> list[np.ndarray]:
    parts = [sign_sums.integers(each, K, UNITS, loss) for each, loss in zip(contributions, losses, strict=True)]
    for part in parts:
        for values, (count, most, _) in zip(part, sign_sums.segments(sum(K), len(K)), strict=True):
            assert values.shape == (count,)
            assert 0 <= values.min() <= values.max() <= most
    return [np.asarray(np.sum(same, axis=0, dtype=np.int64)) for same in zip(*parts, strict=True)]


def test_the_mean_is_that_of_the_signs_with_the_mean_scale() -> None:
    contributions = [sent(seed) for seed in range(5)]
    mean = sign_sums.mean(sums_of(contributions, [1.0] * 5), 5, K, UNITS)
    alone = [[gamma.numpy() for gamma in quantize.dequantize(each, "sign", K)] for each in contributions]
    for block, part in enumerate(np.split(mean["coordinates"], np.cumsum(K)[:-1])):
        scales = [abs(each[block][0]) for each in alone]
        signs = np.mean([np.sign(each[block]) for each in alone], axis=0)
        np.testing.assert_allclose(part, np.mean(scales) * signs, rtol=1e-5)
        assert mean[sign_sums.MEAN_SCALES][block] == pytest.approx(np.mean(scales), rel=1e-5)


def test_a_scale_counts_at_most_four_units_and_none_where_there_is_no_unit() -> None:
    huge = {**sent(1), "exponent": np.array([20], np.int32)}
    units = np.array([0.5, 2.0, 0.0])
    scales = sign_sums.integers(huge, K, units, None)[1]
    assert scales.tolist() == [sign_sums.MOST_SCALE, sign_sums.MOST_SCALE, 0]
