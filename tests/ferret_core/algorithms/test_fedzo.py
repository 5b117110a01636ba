from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from ferret_core import catalog
from ferret_core.algorithms import fedzo
from ferret_core.algorithms._base import Client, Weighted
from ferret_core.client.local_round import contribute
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.models.digest import model_digest
from ferret_core.models.parameters import trainable
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from ferret_core.rounds.sampling import client_names, round_tasks
from ferret_core.training.zeroth_order import zeroth_order_steps
from tests.refusals import refused

SpecFactory = Callable[..., ExperimentSpec]

LOCAL = {"learning_rate": 1e-3, "steps": 5, "batch_size": 2, "epsilon": 1e-3}


def weights(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().float().reshape(-1) for parameter in trainable(model).values()])


def replica_of(spec: ExperimentSpec) -> Replica:
    return Replica.load(catalog.resolve(spec).spec)


def clients_of(replica: Replica) -> list[Client]:
    data = FederatedData(replica.spec, replica.tokenizer, replica.context)
    names = client_names(replica.spec.participants.simulated)
    tasks = round_tasks(replica.spec, "simulation", replica.round + 1, names, replica.digest)
    return [Client(task, data.shard(task.participant)) for task in tasks]


def test_the_server_takes_one_participants_model_as_it_is(toy_spec: SpecFactory) -> None:
    """Its steps are b₁ of b₂ directions each, drawn from its task's seed."""
    replica = replica_of(toy_spec("fedzo", options={"local": {**LOCAL, "perturbations": 3}}))
    alone, (client, *_) = replica_of(replica.spec), clients_of(replica)
    sent = contribute(replica, client).sealed.contribution
    algorithm = replica.algorithm
    algorithm.apply_update(replica.model, {}, algorithm.aggregate({}, [Weighted(3.0, sent)]), 1.0)
    local = fedzo.Config.model_validate(replica.spec.algorithm.options).local
    seeds = [derive_seed(client.task.seed, "direction", n) for n in range(15)]
    slopes = zeroth_order_steps(alone.model, client.shard.batches(2, client.task.data_seed), local, seeds).slopes
    assert slopes.shape == (15,)
    torch.testing.assert_close(weights(replica.model), weights(alone.model), rtol=0, atol=1e-7)


def test_a_runaway_is_no_contribution_and_leaves_the_model(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedzo", options={"local": {**LOCAL, "learning_rate": 1e12}}))
    with refused("training.non_finite", "learning_rate"):
        contribute(replica, clients_of(replica)[0])
    assert model_digest(replica.model, files=replica.files) == replica.digest


def test_participants_look_along_directions_of_their_own(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedzo", options={"local": {**LOCAL, "steps": 1}}))
    sent = [contribute(replica, client).sealed for client in clients_of(replica)[:2]]
    assert abs(np.corrcoef([sealed.contribution.arrays["update"] for sealed in sent])[0, 1]) < 0.05


def test_a_model_in_half_precision_is_tuned_in_fp32_and_left_as_it_was(toy_spec: SpecFactory) -> None:
    """At a rate so low that bf16 would round every step away."""
    spec = toy_spec("fedzo", options={"local": {**LOCAL, "learning_rate": 1e-6}})
    replica = replica_of(spec.model_copy(update={"model": spec.model.model_copy(update={"dtype": "bfloat16"})}))
    update = contribute(replica, clients_of(replica)[0]).sealed.contribution.arrays["update"]
    assert model_digest(replica.model, files=replica.files) == replica.digest
    assert update.dtype == np.float32
    assert 0 < np.abs(update).max() < 1e-4
    assert (update != 0).mean() > 0.9
