"""A site that was away for many rounds: the cost of its return."""

from __future__ import annotations

import time
from typing import Any

from ferret_bench._base import Say
from ferret_bench._edge.site_process import Site
from ferret_bench._edge.testbed import World
from ferret_bench._edge.waiting import LOOK_SECONDS, Deadline, await_round

EITHER = {"participants": {"edge": 2, "fraction": 0.5}, "round": {"over_selection": 1.0}}
"""Both sites are drawn for every round, which closes with the first contribution."""


def measure(world: World, missed: int, say: Say, deadline: Deadline) -> dict[str, Any]:
    """Two sites begin, one leaves, the other continues alone for ``missed`` rounds; then only the first is there.

    ``bytes`` and ``seconds`` count from its start until its next contribution is acknowledged. ``following`` is the
    part of the seconds in which it followed the ledger.
    """
    run = world.submit("a long absence", missed + 50, **EITHER)
    away, busy = world.site(run, "away"), world.site(run, "busy")
    away.start()
    busy.start()
    await_round(run, 1, deadline)
    _await_base(away, deadline)
    away.end()
    left = run.refresh().experiment.round
    await_round(run, left + missed, deadline)
    busy.end()
    say(f"{run.refresh().experiment.round - left} rounds went by; away comes back")
    before, contributed, begin = away.relay.bytes, len(away.sent), time.monotonic()
    away.start()
    while len(away.sent) == contributed:
        deadline.left()
        time.sleep(LOOK_SECONDS)
    back = away.sent[-1]
    run.cancel()
    return {
        "missed": back.round - 1 - left,
        "bytes": back.at.since(before)._asdict(),
        "seconds": time.monotonic() - begin,
        "following": _following(away, begin),
    }


def _await_base(site: Site, deadline: Deadline) -> None:
    """Waits until the site has the base model and trains."""
    while not any("training" in line.text for line in site.said):
        deadline.left()
        time.sleep(LOOK_SECONDS)


def _following(site: Site, begin: float) -> float:
    """Returns the seconds between the first and the last report of catching up since ``begin``."""
    said = [line.at for line in site.said if line.at > begin and line.text.startswith("catching up")]
    return said[-1] - said[0]
