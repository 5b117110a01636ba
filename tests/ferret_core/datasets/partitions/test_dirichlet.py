from __future__ import annotations

import numpy as np
import pytest

from ferret_core.datasets.partitions.dirichlet import Config, Partition
from tests.refusals import refused

LABELS = [f"label {i % 5}" for i in range(2000)]


def shares(alpha: float, clients: int = 10) -> np.ndarray:
    """Share of each label that each client holds, shape (clients, 5); columns sum to 1."""
    shards = Partition(Config(alpha=alpha)).split(LABELS, clients, seed=3)
    counts = np.array([[sum(LABELS[i] == f"label {k}" for i in shard) for k in range(5)] for shard in shards])
    return counts / counts.sum(axis=0)


def test_a_large_alpha_shares_equally_and_a_small_one_concentrates() -> None:
    assert np.abs(shares(1e5) - 0.1).max() < 0.02
    assert shares(0.01).max(axis=0).min() > 0.5
    assert shares(1e5).max() < shares(1.0).max() < shares(0.01).max()


def test_shares_have_the_distributions_variance() -> None:
    """Var of a Dirichlet share with n clients: (1/n)(1 − 1/n) / (n·alpha + 1)."""
    alpha, clients = 1.0, 10
    drawn = []
    for seed in range(60):
        shards = Partition(Config(alpha=alpha)).split(["one"] * 1000, clients, seed)
        drawn += [len(shard) / 1000 for shard in shards]
    assert np.var(drawn) == pytest.approx(0.1 * 0.9 / (clients * alpha + 1), rel=0.25)


def test_nobody_is_left_with_less_than_the_minimum() -> None:
    shards = Partition(Config(alpha=0.001, min_examples=7)).split(LABELS, 100, seed=0)
    assert min(map(len, shards)) == 7
    assert sorted(index for shard in shards for index in shard) == list(range(2000))


def test_exactly_enough_examples_are_dealt_evenly() -> None:
    assert [len(shard) for shard in Partition(Config(min_examples=4)).split(["a"] * 12, 3, seed=0)] == [4, 4, 4]


def test_too_few_examples_name_the_setting_and_both_numbers() -> None:
    with refused("partition.invalid", " = 5", "9 ", "at most 4 clients", field="participants.simulated"):
        Partition(Config(min_examples=2)).split(["a"] * 9, 5, seed=0)


def test_many_clients_are_filled_up_quickly() -> None:
    shards = Partition(Config(alpha=0.001)).split(["a"] * 30_000, 20_000, seed=0)
    assert min(map(len, shards)) == 1
