"""One participant's work in one round: the same for a simulated client and for a real one at the edge."""

from __future__ import annotations

import logging
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from ferret_core.algorithms.base import Client
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.contribution import SealedContribution, seal
from ferret_core.distributed.sharded_tensor import is_sharded
from ferret_core.models.architecture import LayerSizes
from ferret_core.models.parameters import HALF, trainable
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Arrays
from ferret_core.replica.replica import Replica
from ferret_core.rounds.cost import LocalCost, measured
from ferret_core.system.device import free_device_bytes, memory_checked, require_bfloat16
from ferret_core.training.activation_checkpointing import supports_checkpointing
from ferret_core.training.config import LocalConfig
from ferret_core.training.footprint import FP32, Counts, fit_room, least_bytes, local_bytes
from ferret_core.training.loss import device_of

logger = logging.getLogger(__name__)

LIMITED = sys.platform == "linux"
"""True where the memory of a process can be limited, so that it fails with an error before the system kills it."""


class LocalRound(NamedTuple):
    """A participant's part in a round: its contribution, its memory for the next round, and its costs."""

    sealed: SealedContribution
    memory: Arrays
    cost: LocalCost


def contribute(replica: Replica, client: Client) -> LocalRound:
    """Trains on the client's shard from the replica's model, which is left unchanged, and seals the update.

    Raises ``contribution.wrong_base`` if the replica is not at the task's model, ``contribution.non_finite`` for an
    update that is not finite, ``training.unsupported`` for a site's own training that the algorithm does not support,
    and for a GPU without the experiment's precision, and ``memory.exhausted``.
    """
    if replica.digest != client.task.base_digest:
        raise FerretError.of_field(
            "contribution.wrong_base",
            "base_digest",
            client.task.base_digest,
            f"this copy of the model is at {replica.digest[:12]}…, round {replica.round}: catch up with the ledger",
        )
    if replica.spec.privacy.of_records and (client.record is None or client.discretion.protect is not None):
        message = "needs the noise of the experiment, and this participant adds none or another: nothing is sent"
        raise FerretError.of_field("training.unsupported", "privacy.unit", replica.spec.privacy.unit, message)
    if client.own is not None:
        client.own.site.require(replica.experiment)
    elif (local := replica.experiment.traits.first_order) is not None:
        require_bfloat16(device_of(replica.model), local.precision)
        client = client._replace(in_backward=_fit_room(replica, local, client.shard.longest))
    train = partial(replica.algorithm.local_update, replica.model, replica.state, client)
    with _limited(device_of(replica.model)), memory_checked():
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


def _fit_room(replica: Replica, local: LocalConfig, longest: int) -> bool:
    """Returns True if the device has room for a local update only with steps in the backward pass.

    The update is on sequences of at most ``longest`` tokens, with activations checkpointed. Raises
    ``memory.exhausted`` if it does not fit; a team has no fixed room.
    """
    model, traits = replica.model, replica.experiment.traits
    if is_sharded(model):
        return False
    elsewhere = traits.needs_whole_gradients
    if not supports_checkpointing(model):
        elsewhere = [*elsewhere, "a model that can checkpoint activations"]
    if replica.spec.privacy.of_records:
        elsewhere = [*elsewhere, "noise that protects records"]
    device, counts = device_of(model), _counts(model, local, traits)
    if device.type == "cuda":
        # The model's current memory is free again when its copy is trained.
        room = free_device_bytes(device) + sum(parameter.nbytes for parameter in model.parameters())
        chosen = fit_room(local, partial(local_bytes, counts=counts), room, elsewhere)
    elif LIMITED:
        from ferret_core.system import memory_limit

        sizes = LayerSizes.of_config(cast(Any, model).config.to_dict())
        needed = partial(least_bytes, counts=counts, sizes=sizes, longest=longest)
        chosen = fit_room(local, needed, memory_limit.usable_bytes(), elsewhere)
    else:
        chosen = local
    if chosen is not local:
        logger.warning("whole gradients do not fit: each step is taken in the backward pass, over all its sequences")
    return chosen is not local


def _counts(model: nn.Module, local: LocalConfig, traits: Traits) -> Counts:
    """Counts elements of four bytes: frozen weights stay in their type, unless the trained ones are converted."""
    tuned = trainable(model)
    frozen = [parameter for parameter in model.parameters() if not parameter.requires_grad]
    converted = local.pure or any(weight.dtype in HALF for weight in tuned.values())
    kept = sum(weight.numel() if converted else weight.nbytes // FP32 for weight in frozen)
    sizes = [weight.numel() for weight in tuned.values()]
    d = sum(sizes)
    return Counts(d + kept, d, max(sizes), 0 if traits.projection else d, traits.participant_vectors * d)


def _limited(device: torch.device) -> AbstractContextManager[None]:
    """Limits the process to the machine's free memory while it trains on a processor."""
    if not LIMITED or device.type != "cpu":
        return nullcontext()
    from ferret_core.system.memory_limit import limited

    return limited()
