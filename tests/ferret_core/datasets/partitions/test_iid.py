from __future__ import annotations

from ferret_core.datasets.partitions.iid import Config, Partition
from tests.refusals import refused


def test_sizes_differ_by_at_most_one_and_labels_do_not_matter() -> None:
    partition = Partition(Config())
    shards = partition.split(["a", "b"] * 50, 7, seed=1)
    assert sorted(map(len, shards)) == [14, 14, 14, 14, 14, 15, 15]
    assert partition.split([""] * 100, 7, seed=1) == shards


def test_more_clients_than_examples_name_the_setting_and_both_numbers() -> None:
    with refused("partition.invalid", "the dataset has 3 training examples") as caught:
        Partition(Config()).split(["a"] * 3, 4, seed=0)
    assert (caught.value.errors[0].field, caught.value.errors[0].value) == ("participants.simulated", 4)
