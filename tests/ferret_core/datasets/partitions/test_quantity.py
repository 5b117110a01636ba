from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ferret_core.datasets.partitions.quantity import Config, Partition
from tests.refusals import refused

LABELS = ["a", "b", "b"] * 1000


def sizes(beta: float, seed: int = 3, **options: int) -> list[int]:
    return [len(shard) for shard in Partition(Config(beta=beta, **options)).split(LABELS, 10, seed)]


def test_a_large_beta_gives_equal_sizes_and_a_small_one_concentrates() -> None:
    assert max(sizes(1e6)) - min(sizes(1e6)) < 20
    assert max(sizes(1e6)) < max(sizes(1.0)) < max(sizes(0.01))


def test_sizes_have_the_distributions_variance() -> None:
    """Var of a Dirichlet share with n clients: (1/n)(1 − 1/n) / (n·beta + 1)."""
    shares = np.array([sizes(1.0, seed) for seed in range(60)]) / len(LABELS)
    assert np.var(shares) == pytest.approx(0.1 * 0.9 / 11, rel=0.25)


def test_content_is_alike_whatever_the_size() -> None:
    shards = Partition(Config(beta=1.0)).split(LABELS, 10, seed=3)
    for shard in shards:
        if len(shard) > 200:
            assert Counter(LABELS[index] for index in shard)["b"] / len(shard) == pytest.approx(2 / 3, abs=0.1)


def test_nobody_is_left_with_less_than_the_minimum() -> None:
    assert min(sizes(0.001, min_examples=7)) == 7
    with refused("partition.invalid", "at most 9 clients"):
        Partition(Config(min_examples=301)).split(LABELS, 10, seed=0)
