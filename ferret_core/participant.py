"""What one participant does in one round: the same for a simulated client and for a real one at the edge."""

from __future__ import annotations

from collections.abc import Callable

from ferret_core.datasets._base import Shard
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import Contribution
from ferret_core.replica import Replica


def contribute(
    replica: Replica, shard: Shard, task: RoundTask, on_step: Callable[[int], None] | None = None
) -> Contribution:
    """Trains on ``shard`` from the replica's model, which is left unchanged, and describes the update.

    Raises ``contribution.wrong_base`` when the replica is not at the task's model.
    """
    if replica.digest != task.base_digest:
        raise FerretError.of_field(
            "contribution.wrong_base",
            "base_digest",
            task.base_digest,
            f"this copy of the model is at {replica.digest[:12]}…, round {replica.round}: catch up with the ledger",
        )
    return replica.algorithm.local_update(replica.model, shard, task, on_step)
