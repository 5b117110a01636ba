"""The scenarios: five sites of one experiment, four of them with trouble on the way, and one that was away for many
rounds.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from ferret_bench._edge.relay import Bytes
from ferret_bench._edge.site_process import Site
from ferret_bench._edge.testbed import LOOK_SECONDS, Deadline, World, await_round
from ferret_bench.base import Say

ROUNDS = 10
KILLED_AFTER = "participant.spooled:3"
"""The third contribution is made and stored, and nothing of it is sent."""
REVOKED_AFTER = 3
"""Rounds before the revocation. Round 4 is then in progress, and the replacement takes part from round 5 on."""
DIVERGENT = ("-m", "ferret_bench._edge.divergent", "join", "--yes")


def play(world: World, say: Say, deadline: Deadline) -> dict[str, Any]:
    """Runs the scenario. Raises the experiment's error, and ``experiment.timeout`` after the deadline."""
    begin = time.perf_counter()
    run = world.submit("five sites", ROUNDS, participants={"edge": 4})
    steady, killed, revoked = (world.site(run, name) for name in ("steady", "killed", "revoked"))
    diverging = world.site(run, "divergent", DIVERGENT)
    for site in (steady, diverging, revoked):
        site.start()
    killed.start(FERRET_FAILPOINT=KILLED_AFTER)
    killed_status = killed.wait(deadline.left())
    say(f"killed ended with {killed_status} in round {run.refresh().experiment.round + 1}, and is started again")
    killed.start()
    await_round(run, REVOKED_AFTER, deadline)
    run.revoke(revoked.name)
    late = world.site(run, "late")
    say(f"revoked is revoked after round {run.refresh().experiment.round}, and late joins")
    late.start()
    run.wait(deadline.left())
    staying = [steady, killed, late, diverging]
    statuses = {site.name: site.wait(deadline.left()) for site in [*staying, revoked]}
    found = [_found(site, statuses[site.name]) for site in [*staying, revoked]]
    return {
        "state": run.refresh().state.value,
        "rounds": run.experiment.round,
        "digest": run.experiment.digest,
        "agree": all(site.digest == run.experiment.digest for site in staying),
        "refused": sorted({f"{refused.participant}: {refused.code}" for refused in run.rejections()}),
        "killed": killed_status,
        "sites": found,
        "seconds": time.perf_counter() - begin,
    }


def _found(site: Site, status: int) -> dict[str, Any]:
    """Returns a site's result. Its rounds are the ones directly after another of its rounds."""
    rounds = [bytes for _, bytes in site.rounds] or [Bytes()]
    joining = site.sent[0].at if site.sent else Bytes()
    return {
        "site": site.name,
        "status": status,
        "rounds": [sent.round for sent in site.sent],
        "up": _spread([bytes.up for bytes in rounds]),
        "down": _spread([bytes.down for bytes in rounds]),
        "joining": joining._asdict(),
        "total": site.relay.bytes._asdict(),
        "digest": site.digest,
        "last_words": site.said[-1].text if site.said else None,
    }


def _spread(values: list[int]) -> dict[str, float]:
    return {"median": median(values), "max": max(values)}


EITHER = {"participants": {"edge": 2, "fraction": 0.5}, "round": {"over_selection": 1.0}}
"""Both sites are drawn for every round, which closes with the first contribution."""


def catch_up(world: World, missed: int, say: Say, deadline: Deadline) -> dict[str, Any]:
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
    before, begin = away.relay.bytes, time.monotonic()
    away.start()
    while not (after := [sent for sent in away.sent if sent.round > left + missed]):
        deadline.left()
        time.sleep(LOOK_SECONDS)
    back = after[0]
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
    said = [line.at for line in site.said if line.at > begin and "catching up" in line.text]
    return said[-1] - said[0]
