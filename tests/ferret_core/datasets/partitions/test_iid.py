from __future__ import annotations

from ferret_core.datasets.partitions.iid import Config, Partition


def test_sizes_differ_by_at_most_one_and_labels_do_not_matter() -> None:
    partition = Partition(Config())
    shards = partition.split(["a", "b"] * 50, 7, seed=1)
    assert sorted(map(len, shards)) == [14, 14, 14, 14, 14, 15, 15]
    assert partition.split([""] * 100, 7, seed=1) == shards
