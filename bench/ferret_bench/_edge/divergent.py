"""``ferret join`` of a site with a model that diverges in round 3, as after a memory fault.

One weight changes after the ledger was followed, and the site takes the resulting model for the round's. So it sends a
contribution to another base model than the server's.
"""

from __future__ import annotations

from typing import Any

from ferret_cli.main import main
from ferret_core.client import local_round

ROUND = 3


def diverge() -> None:
    """Diverges once, from the next round on."""
    contribute = local_round.contribute
    healthy = True

    def contribute_divergent(replica: Any, client: Any) -> Any:
        nonlocal healthy
        if healthy and client.task.round == ROUND:
            healthy = False
            next(replica.model.parameters()).data.view(-1)[0] += 1
            replica.update_digest()
            client = client._replace(task=client.task.model_copy(update={"base_digest": replica.digest}))
        return contribute(replica, client)

    local_round.contribute = contribute_divergent


if __name__ == "__main__":
    diverge()
    main()
