from __future__ import annotations

from collections import Counter

import pytest

from ferret_core.datasets.partitions.pathological import Config, Partition
from tests.refusals import refused

LABELS = ["a"] * 500 + ["b"] * 300 + ["c"] * 200 + ["d"] * 100


def held(labels_per_client: int, clients: int, seed: int = 0) -> list[Counter[str]]:
    shards = Partition(Config(labels_per_client=labels_per_client)).split(LABELS, clients, seed)
    return [Counter(LABELS[index] for index in shard) for shard in shards]


@pytest.mark.parametrize(("each", "clients"), [(1, 4), (1, 9), (2, 2), (2, 11), (3, 50), (4, 7)])
def test_every_client_holds_exactly_so_many_labels_and_every_label_is_held(each: int, clients: int) -> None:
    found = held(each, clients)
    assert {len(counter) for counter in found} == {each}
    assert sum(found, Counter()) == Counter(LABELS)


def test_owners_share_a_label_equally_and_no_label_has_many_more_owners() -> None:
    found = held(2, 11)
    owners = {label: [counter[label] for counter in found if label in counter] for label in "abcd"}
    assert {len(parts) for parts in owners.values()} <= {5, 6}
    assert all(max(parts) - min(parts) <= 1 for parts in owners.values())


def test_pairs_of_labels_differ_between_clients() -> None:
    assert len({frozenset(counter) for counter in held(2, 40)}) > 3


def test_too_few_clients_for_the_labels_are_told_how_many_it_takes() -> None:
    with refused("partition.invalid", "cannot hold all 4: use at least 2", field="participants.simulated"):
        held(2, 1)


def test_more_labels_than_there_are_is_about_that_option() -> None:
    with refused("partition.invalid", "have only 4 labels", field="partition.labels_per_client"):
        held(5, 10)


def test_a_label_with_fewer_examples_than_owners_is_named() -> None:
    with refused("partition.invalid", "100", "1100", "150"):
        held(2, 300)
