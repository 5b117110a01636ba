"""What one participant does in one round: the same for a simulated client and for a real one at the edge."""

from __future__ import annotations

from ferret_core.algorithms._base import Client, LocalUpdate
from ferret_core.protocol.errors import FerretError
from ferret_core.replica import Replica
from ferret_core.training.micro_batches import memory_checked


def contribute(replica: Replica, client: Client) -> LocalUpdate:
    """Trains on the client's shard from the replica's model, which is left unchanged, and describes the update.

    Raises ``contribution.wrong_base`` when the replica is not at the task's model, and ``memory.exhausted``.
    """
    if replica.digest != client.task.base_digest:
        raise FerretError.of_field(
            "contribution.wrong_base",
            "base_digest",
            client.task.base_digest,
            f"this copy of the model is at {replica.digest[:12]}…, round {replica.round}: catch up with the ledger",
        )
    with memory_checked():
        return replica.algorithm.local_update(replica.model, replica.state, client)
