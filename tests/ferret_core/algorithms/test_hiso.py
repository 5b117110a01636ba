from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ferret_core import catalog
from ferret_core.algorithms import hiso
from ferret_core.algorithms._base import Client, Weighted
from ferret_core.client.local_round import contribute
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.models.parameters import trainable
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Array, Contribution
from ferret_core.replica.replica import Replica
from ferret_core.rounds.sampling import client_names, round_tasks
from ferret_core.sample import model_path
from ferret_core.simulate import simulate
from ferret_core.training.zeroth_order import combined
from tests.refusals import refused

SpecFactory = Callable[..., ExperimentSpec]

LOCAL = {"learning_rate": 1e-3, "steps": 6, "batch_size": 2, "epsilon": 1e-3, "perturbations": 3}


def flat(tensors: dict[str, Any]) -> Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors.values()])


def replica_of(spec: ExperimentSpec) -> Replica:
    return Replica.load(catalog.resolve(spec).spec)


def clients_of(replica: Replica) -> list[Client]:
    data = FederatedData(replica.spec, replica.tokenizer, replica.context)
    names = client_names(replica.spec.participants.simulated)
    tasks = round_tasks(replica.spec, "simulation", replica.round + 1, names, replica.digest)
    return [Client(task, data.shard(task.participant)) for task in tasks]


def applied(replica: Replica, *received: Contribution) -> dict[str, Array]:
    result = replica.algorithm.aggregate(replica.state, [Weighted(1.0, sent) for sent in received])
    return dict(replica.algorithm.apply_update(replica.model, replica.state, result, 1.0))


def roughened(replica: Replica) -> None:
    """Gives every weight a curvature of its own."""
    curvature = replica.state["curvature"]
    replica.state = {"curvature": np.random.default_rng(1).uniform(0.5, 4, len(curvature)).astype(np.float32)}


@pytest.mark.parametrize("smoothing", [0.0, 0.05])
def test_the_server_ends_where_a_lone_participant_did(
    toy_spec: SpecFactory, smoothing: float, monkeypatch: Any
) -> None:
    """Within rounding; the participant's last weights are looked at before its own are put back."""
    replica = replica_of(toy_spec("hiso", options={"smoothing": smoothing, "local": LOCAL}))
    if smoothing:
        roughened(replica)
    ended: list[Tensor] = []
    zeroth_order_steps = hiso.zeroth_order_steps

    def watched(model: nn.Module, *arguments: Any) -> Any:
        done = zeroth_order_steps(model, *arguments)
        ended.append(flat(trainable(model)).clone())
        return done

    monkeypatch.setattr(hiso, "zeroth_order_steps", watched)
    sent = contribute(replica, clients_of(replica)[0]).sealed.contribution
    before = flat(trainable(replica.model)).clone()
    applied(replica, sent)
    torch.testing.assert_close(flat(trainable(replica.model)), ended[0], rtol=0, atol=1e-5)
    assert float((ended[0] - before).abs().max()) > 1e-3


def test_all_participants_look_along_the_same_directions_and_send_four_bytes_each(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("hiso", options={"local": LOCAL}))
    sent = [contribute(replica, client).sealed.contribution for client in clients_of(replica)]
    assert len({item.meta.seed for item in sent}) == 1
    assert [sum(array.nbytes for array in item.arrays.values()) for item in sent] == [4 * 18] * 3
    assert len({item.arrays["slopes"].tobytes() for item in sent}) == 3, "their data differ"


def test_the_curvature_follows_from_seeds_and_slopes(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("hiso", options={"smoothing": 0.2, "local": LOCAL}))
    roughened(replica)
    before = torch.from_numpy(replica.state["curvature"])
    sent = contribute(replica, clients_of(replica)[0]).sealed.contribution
    found = applied(replica, sent)["curvature"]
    assert isinstance(replica.algorithm, hiso.Algorithm)
    seeds = replica.algorithm._seeds(sent.meta.seed or 0)
    expected = before.double()
    for step, slopes in enumerate(sent.arrays["slopes"].reshape(6, 3).tolist()):
        along = zip(seeds[3 * step : 3 * step + 3], slopes, strict=True)
        gradient = sum(slope / 3 * flat(combined(replica.model, {seed: 1.0})) for seed, slope in along) / before.sqrt()
        expected = 0.8 * expected + 0.2 * gradient.double().square()
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4)


def test_without_smoothing_it_is_decomfl_and_keeps_nothing(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("hiso", options={"smoothing": 0, "local": LOCAL}))
    assert replica.state == {}
    assert applied(replica, contribute(replica, clients_of(replica)[0]).sealed.contribution) == {}


@pytest.mark.slow
def test_it_learns_on_the_demo_model(toy_spec: SpecFactory) -> None:
    options = {"local": {"learning_rate": 1e-4, "steps": 12, "batch_size": 4, "epsilon": 1e-3, "perturbations": 2}}
    changes = {"model": {"source": str(model_path())}, "participants": {"simulated": 1}}
    evaluation = {"every": 2, "examples": 6, "generate_examples": 0}
    base, *_, last = simulate(toy_spec("hiso", options=options, rounds=2, evaluation=evaluation, **changes)).rounds
    assert last.metrics["eval_loss"] < base.metrics["eval_loss"] - 0.02


def test_slopes_along_other_directions_are_refused(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("hiso", options={"local": LOCAL}))
    client = clients_of(replica)[0]
    sent = contribute(replica, client).sealed.contribution
    other = Contribution(sent.meta.model_copy(update={"seed": client.task.seed}), sent.arrays)
    with refused("contribution.malformed", "expected") as caught:
        replica.experiment.config.check(other, client.task, replica.shapes)
    assert (caught.value.code, caught.value.errors[0].field) == ("contribution.malformed", "metadata.seed")
