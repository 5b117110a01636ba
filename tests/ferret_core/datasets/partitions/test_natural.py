from __future__ import annotations

import pytest

from ferret_core.datasets.partitions.natural import Config, Partition
from tests.refusals import refused


def test_each_label_is_a_client_in_the_order_of_names() -> None:
    assert Partition(Config()).split(["b", "a", "c", "a"], 3, seed=0) == [[1, 3], [0], [2]]


@pytest.mark.parametrize("clients", [1, 2, 4, 10])
def test_another_number_of_clients_is_told_the_right_one(clients: int) -> None:
    with refused("partition.invalid", "labels of the training examples: 3, each a client; set it to 3") as caught:
        Partition(Config()).split(["b", "a", "c", "a"], clients, seed=0)
    assert (caught.value.errors[0].field, caught.value.errors[0].value) == ("participants.simulated", clients)
