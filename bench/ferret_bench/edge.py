"""Sites at the edge: five participant processes of one experiment over TLS, with trouble on the way.

Each site has a separate folder, environment and key, and a relay to the server that counts its bytes. One is
killed and comes back, one joins at round 5 in the place of one that is revoked, and one sends what it computed from
another model. The document holds ``machine``, ``bounds``, and for each of ``ways`` (``direct``; ``lossy``: 300 ms and
10 % loss each way; ``proxied``: through an HTTP proxy)

    missing                   why it was not taken, else null, and then
    state, rounds, digest     of the experiment in the end
    agree                     whether every site that stayed rebuilt that model from the ledger
    refused                   participants and the codes with which their uploads were refused
    sites                     of each: exit status, its rounds, median and most of the bytes up and down of its rounds
                              after the first, bytes until its first contribution was accepted, and all bytes

and ``catch_up``: bytes and seconds of a site that missed 100 rounds. Bytes are TCP's payload, TLS and HTTP included.

With ``--secure`` the sites sum under masks. One of five is killed before it has dealt, one after, and one releases a
wrong share. ``secure`` holds

    state, rounds, digest, agree    as above
    attempts, survivors             of each round; all sums were repeated from their transcripts
    named                           participants that cheated and the codes with which they were refused

and ``ten``: what each of ten sites sends in a round in addition to its coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from ferret_bench import base
from ferret_bench._edge import links, scenarios, secure
from ferret_bench._edge.testbed import Deadline, inhabited
from ferret_bench.base import Asked, Document, Say, Table
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against

BOUNDS = {
    "completed": Bound(">=", 1),
    "agree": Bound(">=", 1),
    "bytes_up": Bound("<=", 12_000),
    "bytes_down": Bound("<=", 60_000),
}
SECURE_BOUNDS = {
    "completed": Bound(">=", 1),
    "agree": Bound(">=", 1),
    "named": Bound(">=", 1),
    "bytes_extra": Bound("<=", 1_800),
}
MISSED, QUICK_MISSED = 100, 3
MEMBERS = 10
COUNTED, QUICK_COUNTED = 7, 2
"""Rounds of the ten sites."""
COLUMNS = (
    "site",
    "status",
    "rounds",
    "up",
    "most up",
    "down",
    "most down",
    "joining up",
    "joining down",
    "total up",
    "total down",
)


@final
class Benchmark(base.Benchmark):
    """``ferret dev bench edge``; with ``--bounds`` the direct way alone."""

    def __init__(self, *, secure: bool = False) -> None:
        self._secure = secure

    def measure(self, say: Say, asked: Asked) -> Document:
        deadline = Deadline.after(asked.max_seconds)
        if self._secure:
            return _summed(QUICK_COUNTED if asked.quick else COUNTED, say, deadline)
        taken = {
            way: _played(way, say, deadline) for way in (["direct"] if asked.bounds or asked.quick else links.WAYS)
        }
        missed = None if asked.bounds else _caught_up(QUICK_MISSED if asked.quick else MISSED, say, deadline)
        return {
            "ways": taken,
            "catch_up": missed,
            "bounds": against(BOUNDS, _bounded([found for found in taken.values() if "missing" not in found])),
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        if "secure" in document:
            return [*_secure_tables(document["secure"], document["ten"]), bound.table(document)]
        return [
            *(_table(way, found) for way, found in document["ways"].items()),
            *([_catch_up_table(document["catch_up"])] if document["catch_up"] else []),
            bound.table(document),
        ]


def _played(way: str, say: Say, deadline: Deadline) -> dict[str, Any]:
    if reason := links.missing(way):
        return {"missing": reason}
    say(f"{way}: five sites")
    with links.WAYS[way]() as place, inhabited(place) as world:
        return scenarios.play(world, say, deadline)


def _caught_up(missed: int, say: Say, deadline: Deadline) -> dict[str, Any]:
    say(f"a site that is away for {missed} rounds")
    with links.direct() as place, inhabited(place) as world:
        return scenarios.catch_up(world, missed, say, deadline)


def _summed(rounds: int, say: Say, deadline: Deadline) -> Document:
    with links.direct() as place, inhabited(place) as world:
        five = secure.play(world, say, deadline)
        ten = secure.count(world, MEMBERS, rounds, say, deadline)
    values = {
        "completed": float(five["state"] == "completed"),
        "agree": float(five["agree"]),
        "named": float(five["named"] == ["cheater: secure.shares_invalid"]),
        "bytes_extra": ten["extra"]["max"],
    }
    return {"secure": five, "ten": ten, "bounds": against(SECURE_BOUNDS, values)}


def _bounded(found: list[dict[str, Any]]) -> dict[str, float | None]:
    """Returns the maximum over all sites and ways; of medians, because a restarted round is not typical."""
    sites = [site for way in found for site in way["sites"]]
    return {
        "completed": min(float(way["state"] == "completed") for way in found),
        "agree": min(float(way["agree"]) for way in found),
        "bytes_up": max(site["up"]["median"] for site in sites),
        "bytes_down": max(site["down"]["median"] for site in sites),
    }


def _table(way: str, found: Mapping[str, Any]) -> Table:
    if "missing" in found:
        return Table(f"{way}: not taken", ["reason"], [[found["missing"]]])
    title = f"{way}: {found['state']} after {found['rounds']} rounds in {found['seconds']:.0f} s"
    rows = [
        [
            site["site"],
            site["status"],
            len(site["rounds"]),
            *(site[direction][rank] for direction in ("up", "down") for rank in ("median", "max")),
            *(site[part][direction] for part in ("joining", "total") for direction in ("up", "down")),
        ]
        for site in found["sites"]
    ]
    return Table(f"{title}; bytes of a round, until the first contribution, and in all", COLUMNS, rows)


def _secure_tables(five: Mapping[str, Any], ten: Mapping[str, Any]) -> list[Table]:
    rounds = [
        [number, attempts, ", ".join(survivors)]
        for number, (attempts, survivors) in enumerate(zip(five["attempts"], five["survivors"], strict=True), start=1)
    ]
    named = f"{five['state']} in {five['seconds']:.0f} s; named: {', '.join(five['named']) or 'nobody'}"
    columns = ["members", "vector", "extra", "most extra", "with HTTP and TLS"]
    bytes_up = [ten["members"], ten["vector"], ten["extra"]["median"], ten["extra"]["max"], ten["wire"]]
    return [
        Table(named, ["round", "attempts", "summed"], rounds),
        Table("bytes of a round that a site sends", columns, [bytes_up]),
    ]


def _catch_up_table(found: Mapping[str, Any]) -> Table:
    columns = ["rounds missed", "bytes up", "bytes down", "seconds", "of these to follow the ledger"]
    row = [found["missed"], *found["bytes"].values(), f"{found['seconds']:.1f}", f"{found['following']:.1f}"]
    return Table("a site that was away, from its start to its next contribution", columns, [row])
