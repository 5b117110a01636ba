from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from ferret_core import catalog
from ferret_core.algorithms import fedkseed
from ferret_core.algorithms._base import Client, Weighted
from ferret_core.client.local_round import contribute
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.models.digest import model_digest
from ferret_core.models.parameters import trainable
from ferret_core.projection import FORMAT_VERSION
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Array, Contribution, encode
from ferret_core.replica.replica import Replica
from ferret_core.rounds.sampling import client_names, round_tasks
from ferret_core.training.zeroth_order import zeroth_order_steps
from tests.refusals import refused

SpecFactory = Callable[..., ExperimentSpec]

LOCAL = {"learning_rate": 1e-3, "steps": 20, "batch_size": 2, "epsilon": 1e-3}


def weights(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in trainable(model).values()])


def replica_of(spec: ExperimentSpec) -> Replica:
    return Replica.load(catalog.resolve(spec).spec)


def clients_of(replica: Replica) -> list[Client]:
    data = FederatedData(replica.spec, replica.tokenizer, replica.context)
    names = client_names(replica.spec.participants.simulated)
    tasks = round_tasks(replica.spec, "simulation", replica.round + 1, names, replica.digest)
    return [Client(task, data.shard(task.participant)) for task in tasks]


def sent_by(replica: Replica, client: Client) -> Contribution:
    """Over the wire."""
    return contribute(replica, client).sealed.contribution


def slopes_by_candidate(slopes: Array, drawn: Array, K: int) -> Array:
    return np.bincount(drawn, weights=slopes, minlength=K)


@pytest.mark.heavy
def test_a_participant_sends_four_bytes_a_step(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedkseed", options={"local": {**LOCAL, "steps": 200, "batch_size": 1}}))
    sent = sent_by(replica, clients_of(replica)[0])
    assert sum(array.nbytes for array in sent.arrays.values()) == 800
    assert len(sent.encode()) < 800 + 512, "names and metadata"
    result = replica.algorithm.aggregate(replica.state, [Weighted(1.0, sent)])
    assert len(encode(result, {"round": 1})) < 4096 / 8 + 800 + 300, "one bit per candidate, and what was drawn"


@pytest.mark.heavy
def test_the_server_ends_where_a_lone_participant_did(toy_spec: SpecFactory) -> None:
    """Within rounding: each of 20 steps rounds every weight three times."""
    replica = replica_of(toy_spec("fedkseed", options={"K": 9, "local": {**LOCAL, "perturbations": 2}}))
    alone, client = replica_of(replica.spec), clients_of(replica)[0]
    sent, algorithm = sent_by(replica, client), replica.algorithm
    result = algorithm.aggregate(replica.state, [Weighted(2.0, sent)])
    algorithm.apply_update(replica.model, replica.state, result, 1.0)
    config = fedkseed.Config.model_validate(replica.spec.algorithm.options)
    drawn = fedkseed.draw(np.ones(9, np.int64), client.task.seed, 40)
    seeds = replica.state["candidates"][drawn].tolist()
    walk = zeroth_order_steps(alone.model, client.shard.batches(2, client.task.data_seed), config.local, seeds)
    assert np.array_equal(walk.slopes, sent.arrays["slopes"])
    unit = torch.finfo(torch.float32).eps * float(weights(alone.model).abs().max())
    torch.testing.assert_close(weights(replica.model), weights(alone.model), rtol=0, atol=60 * unit)
    assert float((weights(alone.model) - weights(replica_of(replica.spec).model)).abs().max()) > 1000 * unit


def test_slopes_add_up_by_candidate_and_average_by_weight(toy_spec: SpecFactory) -> None:
    K = 16
    replica = replica_of(toy_spec("fedkseed", options={"K": K, "local": LOCAL}))
    sent = [sent_by(replica, client) for client in clients_of(replica)]
    shares = [0.5, 2.0, 1.5]
    pairs = [Weighted(share, contribution) for share, contribution in zip(shares, sent, strict=True)]
    result = replica.algorithm.aggregate(replica.state, pairs)
    draws = [fedkseed.draw(np.ones(K, np.int64), contribution.meta.seed or 0, 20) for contribution in sent]
    expected = sum(
        share * slopes_by_candidate(contribution.arrays["slopes"], drawn, K) / 4
        for share, contribution, drawn in zip(shares, sent, draws, strict=True)
    )
    drawn = fedkseed.drawn_in(result, K)
    assert set(np.flatnonzero(drawn)) == set(np.concatenate(draws).tolist())
    assert np.allclose(result["slopes"], np.asarray(expected)[drawn], rtol=1e-6)


@pytest.mark.heavy
def test_directions_are_the_experiments_and_draws_the_participants(toy_spec: SpecFactory) -> None:
    first, other = (replica_of(toy_spec("fedkseed", seed=seed)) for seed in (1, 2))
    pool = first.state["candidates"]
    assert (pool.dtype, pool.shape, len(set(pool.tolist()))) == (np.uint64, (4096,), 4096)
    assert not set(pool.tolist()) & set(other.state["candidates"].tolist())
    tasks = [client.task.seed for client in clients_of(first)]
    assert len({tuple(fedkseed.draw(np.ones(4096, np.int64), seed, 20).tolist()) for seed in tasks}) == 3


def test_candidates_are_drawn_in_proportion_to_their_odds() -> None:
    odds = np.array([1, 0, 5, 2], dtype=np.int64) << 40
    counts = Counter(fedkseed.draw(odds, 11, 8000).tolist())
    assert set(counts) == {0, 2, 3}
    assert [counts[k] / 1000 for k in (0, 2, 3)] == pytest.approx([1, 5, 2], abs=0.15)
    assert fedkseed.draw(np.ones(1, np.int64), 2**64 - 1, 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("field", "value"), [("seed", 5), ("seed", None), ("projection", FORMAT_VERSION + 1)])
def test_a_draw_of_ones_own_is_refused(toy_spec: SpecFactory, field: str, value: int | None) -> None:
    replica = replica_of(toy_spec("fedkseed", options={"local": {**LOCAL, "steps": 2}}))
    client = clients_of(replica)[0]
    sent = sent_by(replica, client)
    algorithm: Any = replica.algorithm
    algorithm.config.check(sent, client.task, replica.shapes)
    foreign = Contribution(sent.meta.model_copy(update={field: value}), sent.arrays)
    with refused("contribution.malformed", f"metadata.{field} = {value}"):
        algorithm.config.check(foreign, client.task, replica.shapes)


def test_a_model_in_half_precision_is_left_as_it_was_and_moved_by_the_same_bits(toy_spec: SpecFactory) -> None:
    spec = toy_spec("fedkseed", options={"K": 64, "local": LOCAL})
    spec = spec.model_copy(update={"model": spec.model.model_copy(update={"dtype": "float16"})})
    replicas = [replica_of(spec), replica_of(spec)]
    sent = sent_by(replicas[0], clients_of(replicas[0])[0])
    assert model_digest(replicas[0].model, files=replicas[0].files) == replicas[0].digest
    result = replicas[0].algorithm.aggregate(replicas[0].state, [Weighted(1.0, sent)])
    for item in replicas:
        item.algorithm.apply_update(item.model, item.state, result, 1.0)
    assert (
        model_digest(replicas[0].model, files=replicas[0].files)
        == model_digest(replicas[1].model, files=replicas[1].files)
        != replicas[0].digest
    )


def test_a_runaway_is_no_contribution_and_leaves_the_model(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedkseed", options={"local": {**LOCAL, "learning_rate": 1e12}}))
    with refused("training.non_finite", "learning_rate"):
        contribute(replica, clients_of(replica)[0])
    assert model_digest(replica.model, files=replica.files) == replica.digest


@pytest.mark.parametrize(
    "options", [{"K": 0}, {"K": 2**20 + 1}, {"local": {"epsilon": -1}}, {"local": {"momentum": 0.9}}]
)
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        fedkseed.Config.model_validate(options)
