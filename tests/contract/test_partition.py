"""What every partition must do; a new file in ``ferret_core/datasets/partitions`` is tested here by being there."""

from __future__ import annotations

import numpy as np
import pytest

from ferret_core import catalog, discovery
from ferret_core.datasets.partitions.base import FederatedPartition
from ferret_core.protocol.spec import PluginChoice
from tests.refusals import refused

PARTITIONS = "ferret_core.datasets.partitions"
LABELS = [f"label {i % 8}" for i in range(300)]
CLIENTS = {"natural": [8], "pathological": [4, 7, 100], "shards": [1, 7, 150]}
"""For how many clients an entry can deal LABELS out with its defaults, where that is not any number from 1 to 300."""
DRAWS_NOTHING = {"natural"}

pytestmark = pytest.mark.parametrize("name", discovery.names(PARTITIONS))


@pytest.fixture
def partition(name: str) -> FederatedPartition:
    return catalog.partition(PluginChoice(name=name))


def test_its_config_has_defaults_and_survives_json(name: str) -> None:
    module = discovery.load(PARTITIONS, name, "partition.name")
    config = module.Config()
    assert module.Config.model_validate_json(config.model_dump_json()) == config
    with pytest.raises(ValueError, match="surprise"):
        module.Config(surprise=1)


@pytest.fixture
def clients(name: str) -> list[int]:
    return CLIENTS.get(name, [1, 7, 300])


def test_every_example_goes_to_exactly_one_client_and_nobody_goes_empty(
    partition: FederatedPartition, clients: list[int]
) -> None:
    for count in clients:
        shards = partition.split(LABELS, count, seed=2**64 - 1)
        assert len(shards) == count
        assert all(shards)
        assert sorted(index for shard in shards for index in shard) == list(range(300))
        assert all(shard == sorted(shard) and {type(index) for index in shard} == {int} for shard in shards)


def test_the_seed_alone_decides(name: str, partition: FederatedPartition, clients: list[int]) -> None:
    before = np.random.get_state()[1].tolist()
    first = partition.split(LABELS, clients[-1], seed=1)
    assert partition.split(LABELS, clients[-1], seed=1) == first
    assert (partition.split(LABELS, clients[-1], seed=2) == first) is (name in DRAWS_NOTHING)
    assert np.random.get_state()[1].tolist() == before


def test_more_clients_than_examples_is_refused(partition: FederatedPartition) -> None:
    with refused("partition.invalid") as caught:
        partition.split(LABELS, 301, seed=0)
    assert (caught.value.errors[0].field, caught.value.errors[0].value) == ("participants.simulated", 301)
