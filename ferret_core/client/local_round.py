"""One participant's work in one round: the same for a simulated client and for a real one at the edge."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from torch import nn

from ferret_core.algorithms.base import Client
from ferret_core.contribution import SealedContribution, seal
from ferret_core.distributed.sharded_tensor import is_sharded
from ferret_core.models.parameters import trainable
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Arrays
from ferret_core.replica.replica import Replica
from ferret_core.rounds.cost import LocalCost, measured
from ferret_core.system.device import free_device_bytes, memory_checked
from ferret_core.training.config import LocalConfig
from ferret_core.training.footprint import check_room
from ferret_core.training.loss import device_of


class LocalRound(NamedTuple):
    """A participant's part in a round: its contribution, its memory for the next round, and its costs."""

    sealed: SealedContribution
    memory: Arrays
    cost: LocalCost


def contribute(replica: Replica, client: Client) -> LocalRound:
    """Trains on the client's shard from the replica's model, which is left unchanged, and seals the update.

    Raises ``contribution.wrong_base`` if the replica is not at the task's model, ``contribution.non_finite`` for an
    update that is not finite, ``training.unsupported`` for a site's own training that the algorithm does not support,
    and ``memory.exhausted``.
    """
    if replica.digest != client.task.base_digest:
        raise FerretError.of_field(
            "contribution.wrong_base",
            "base_digest",
            client.task.base_digest,
            f"this copy of the model is at {replica.digest[:12]}…, round {replica.round}: catch up with the ledger",
        )
    if client.own is not None:
        client.own.site.require(replica.experiment)
    elif (local := replica.experiment.traits.first_order) is not None:
        _require_room(replica.model, local)
    train = partial(replica.algorithm.local_update, replica.model, replica.state, client)
    with memory_checked():
        own = _evaluated(replica, client)
        update, cost = measured(train, device_of(replica.model))
        update = update._replace(metrics={**update.metrics, **own})
        return LocalRound(seal(update, client, replica.experiment, replica.shapes), update.memory, cost)


def _evaluated(replica: Replica, client: Client) -> dict[str, float]:
    """Returns the metrics of the round's model by the site's own function."""
    if client.own is None:
        return {}
    local = replica.experiment.traits.local
    assert local is not None  # every algorithm of ours has local steps
    context = client.own.context(replica.model, client.task, client.shard, local, client.on_step)
    return client.own.evaluate(replica.model, context)


def _require_room(model: nn.Module, local: LocalConfig) -> None:
    """Raises ``memory.exhausted`` if the model's GPU has no room for a local update; a CPU and a team have no fixed
    room."""
    device = device_of(model)
    if device.type != "cuda" or is_sharded(model):
        return
    parameters, tuned = list(model.parameters()), [weight.numel() for weight in trainable(model).values()]
    # The model's current memory is free again when its copy is trained.
    room = free_device_bytes(device) + sum(parameter.nbytes for parameter in parameters)
    check_room(local, sum(parameter.numel() for parameter in parameters), sum(tuned), max(tuned), room)
