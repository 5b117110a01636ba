"""The model of a specification, and what its simulated participants send in a round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ferret_core import catalog
from ferret_core.algorithms.base import Client, State, Weighted
from ferret_core.client.local_round import contribute
from ferret_core.contribution import SealedContribution
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.models.parameters import trainable
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.wire import Arrays, Contribution, ContributionMeta
from ferret_core.replica.replica import Replica
from ferret_core.rounds.sampling import client_names, round_tasks

SpecFactory = Callable[..., ExperimentSpec]


TASK = RoundTask(
    experiment="simulation",
    round=1,
    rounds=1,
    participant="client-1",
    base_digest="0" * 64,
    data_seed=1,
    seed=9,
    round_seed=5,
    population=1,
)


def contribution(arrays: Arrays, task: RoundTask = TASK, **changes: Any) -> Contribution:
    """Arrays that a participant sends for a task, and all that it has to say of them unless it is changed."""
    fields = {name: getattr(task, name) for name in ("experiment", "round", "participant", "base_digest")}
    meta = {"format": 1, **fields, "algorithm": "any", "examples": 1, **changes}
    return Contribution(ContributionMeta.model_validate(meta), arrays)


def replica_of(spec: ExperimentSpec) -> Replica:
    return Replica.load(catalog.resolve(spec).spec)


def clients_of(replica: Replica, on_step: Callable[[int], None] | None = None) -> list[Client]:
    """Those of the next round, with their tasks and data."""
    data = FederatedData(replica.spec, replica.tokenizer, replica.context)
    names = client_names(replica.spec.participants.simulated)
    tasks = round_tasks(replica.spec, "simulation", replica.round + 1, names, replica.digest)
    return [Client(task, data.shard(task.participant), {}, on_step) for task in tasks]


def sent_by(replica: Replica, on_step: Callable[[int], None] | None = None) -> list[SealedContribution]:
    """What the clients of the next round contribute."""
    return [contribute(replica, client).sealed for client in clients_of(replica, on_step)]


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Copies of what is trained."""
    return {name: parameter.detach().clone() for name, parameter in trainable(model).items()}


def flat(model: nn.Module) -> Tensor:
    """A copy of all that is trained, fp32 (d,)."""
    return torch.cat([weight.float().reshape(-1) for weight in weights_of(model).values()])


def held_in(dtype: str, spec: ExperimentSpec) -> ExperimentSpec:
    """The specification with its model in another type."""
    return spec.model_copy(update={"model": spec.model.model_copy(update={"dtype": dtype})})


def move(replica: Replica, *received: Contribution, rate: float = 1.0) -> State:
    """Moves the replica's model by contributions of equal weights; the state after that."""
    result = replica.algorithm.aggregate(replica.state, [Weighted(1.0, sent) for sent in received])
    return replica.algorithm.apply_update(replica.model, replica.state, result, rate)
