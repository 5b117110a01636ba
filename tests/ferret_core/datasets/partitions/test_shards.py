from __future__ import annotations

import numpy as np
import pytest

from ferret_core.datasets.partitions.shards import Config, Partition
from ferret_core.protocol.errors import FerretError

LABELS = [f"digit {i % 10}" for i in range(6000)]


def labels_of(shard: list[int]) -> set[str]:
    return {LABELS[index] for index in shard}


def test_mcmahans_split_gives_equal_sizes_and_at_most_two_labels() -> None:
    shards = Partition(Config()).split(LABELS, 100, seed=0)
    assert {len(shard) for shard in shards} == {60}
    assert {len(labels_of(shard)) for shard in shards} == {1, 2}


def test_more_shards_bring_more_labels() -> None:
    means = [
        np.mean([len(labels_of(shard)) for shard in Partition(Config(shards_per_client=each)).split(LABELS, 50, 0)])
        for each in (1, 2, 5, 20)
    ]
    assert means[0] == 1
    assert means == sorted(means)
    assert means[-1] > 8


def test_sizes_that_do_not_divide_differ_by_no_more_than_the_shards() -> None:
    sizes = [len(shard) for shard in Partition(Config()).split(LABELS[:1001], 100, seed=0)]
    assert sum(sizes) == 1001
    assert max(sizes) - min(sizes) <= 2


def test_more_shards_than_examples_are_refused_with_both_numbers() -> None:
    with pytest.raises(
        FerretError, match=r"has 9 training examples, 10 are needed \(2 per client\): use at most 4"
    ) as caught:
        Partition(Config()).split(LABELS[:9], 5, seed=0)
    assert caught.value.code == "partition.invalid"
