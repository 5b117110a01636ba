"""One participant's work in one round: the same for a simulated client and for a real one at the edge."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from ferret_core.algorithms._base import Client
from ferret_core.contribution import SealedContribution, seal
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Arrays
from ferret_core.replica.replica import Replica
from ferret_core.rounds.cost import LocalCost, measured
from ferret_core.system.out_of_memory import memory_checked
from ferret_core.training.loss import device_of
from ferret_core.training.room import require_room


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
        require_room(replica.model, local)
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
