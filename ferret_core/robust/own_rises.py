"""What a participant measures before it trains: the rises of its own loss by the step of the round before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferret_core.datasets._shard import Shard
from ferret_core.protocol.rises import GREATEST, SHARES, packed, rise
from ferret_core.robust.guard import Guard

if TYPE_CHECKING:
    from ferret_core.replica import Replica, Standing


def own_rises(replica: Replica, shard: Shard) -> str:
    """As they travel, on a few sequences of ``shard``; the replica is left as it was, bit for bit.

    A loss at a share of the step is that of the model which taking back the rest of it gives.
    """
    guard, standing = Guard.own(shard), replica.standing()
    *after, before = (_loss_at(replica, guard, standing, share) for share in (*SHARES, 0))
    return packed([rise(before, loss) for loss in after])


def _loss_at(replica: Replica, guard: Guard, standing: Standing, share: float) -> float:
    """Nats per token."""
    try:
        if share < 1:
            replica.take_back(1 - share)
        return min(guard.loss(replica.model), GREATEST)
    finally:
        replica.restore(standing)
