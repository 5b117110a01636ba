"""Whatever bytes arrive as a contribution: it is accepted, or refused with one typed error, soon and in little memory.

Real contributions of several algorithms, each opened for the task that it was made for, with bytes flipped, cut out,
doubled and moved, JSON values changed, and parts of one put into another. A million by default. The document holds
``machine``, its ``load`` before and after, ``bounds``, and

    contributions  how many were opened
    accepted       how many of them were contributions still
    refused        by code, how many were not
    untyped        other exceptions; there must be none
    seconds        of the processor for opening one: mean, p99, p999 and the longest
    wall_seconds   the longest by the clock, which other work on the machine makes longer; and all together
    grown_bytes    the most memory that the process had, above the most that it had in the first tenth
"""

from __future__ import annotations

import json
import os
import random
import resource
import struct
import tempfile
from array import array
from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any, NamedTuple, final

from ferret_bench._base import Document, Say, Table
from ferret_bench._control.workload import Workload
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.machine import machine
from ferret_core.algorithms._base import Client
from ferret_core.client.local_round import Part, contribute
from ferret_core.contribution import unseal
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.replica.replica import Replica
from ferret_core.simulate import simulate

COUNT, QUICK = 1_000_000, 20_000
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ferret": {"K": 4096, "guard": False},  # 8 kB; what they do to the model does not matter
    "ferret, sparse": {"basis": "H", "coordinates": "sparse_sign", "bytes_per_round": 500, "guard": False},
    "fedavg": {},
    "signsgd": {},
    "topk": {},
    "qsgd": {},
    "sparseloco": {},
    "demo": {},
    "fed_sb": {"coordinates": "sign"},
}
TYPED = frozenset({"contribution.malformed", "contribution.non_finite"})
BOUNDS = {
    "contributions": Bound(">=", COUNT),
    "untyped": Bound("<=", 0),
    "longest_seconds": Bound("<=", 0.05),
    "grown_bytes": Bound("<=", 64 * 2**20),
}
SAID = 50_000
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 1e308, 2**31, 2**64, 10**400, "", "x" * 5000, "\ud800", [], {}, [0, 2**47, 2**47], [[[[]]]],
)  # fmt: skip


class Seed(NamedTuple):
    """A contribution that is accepted, and what it is accepted for."""

    blob: bytes
    spec: ExperimentSpec
    task: RoundTask
    shapes: Shapes


class Found(NamedTuple):
    """What became of the contributions, the seconds of the processor that each took, and the longest by the clock."""

    outcomes: Counter[str]
    untyped: list[str]
    seconds: array[float]
    longest_wall: float
    grown_bytes: int


@final
class Benchmark:
    """``ferret bench fuzz``"""

    def run(self, say: Say, *, bounds: bool = False, quick: bool = False, max_seconds: float = 3600.0) -> Document:
        begin, load = perf_counter(), os.getloadavg()
        seeds = _seeds(say)
        found = _open_all(seeds, QUICK if quick else COUNT, begin + max_seconds, say)
        ordered = sorted(found.seconds)
        figures = {
            "contributions": len(ordered),
            "untyped": len(found.untyped),
            "longest_seconds": ordered[-1],
            "grown_bytes": found.grown_bytes,
        }
        return {
            "benchmark": "fuzz",
            "asked": {"bounds": bounds, "quick": quick, "max_seconds": max_seconds},
            "machine": machine(),
            "load": {"before": load, "after": os.getloadavg()},
            "algorithms": [*ALGORITHMS],
            "contributions": len(ordered),
            "accepted": found.outcomes.pop("accepted", 0),
            "refused": dict(found.outcomes),
            "untyped": found.untyped[:20],
            "seconds": {
                "mean": sum(ordered) / len(ordered),
                "p99": _quantile(ordered, 0.99),
                "p999": _quantile(ordered, 0.999),
                "longest": ordered[-1],
            },
            "wall_seconds": {"longest": found.longest_wall, "all": perf_counter() - begin},
            "grown_bytes": found.grown_bytes,
            "bounds": against(BOUNDS, figures),
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        outcomes = {"accepted": document["accepted"], **document["refused"], "untyped": len(document["untyped"])}
        title = f"{document['contributions']:,} contributions"
        return [Table(title, ["outcome", "contributions"], [*outcomes.items()]), bound.table(document)]


def mutated(seeds: list[Seed], draw: random.Random) -> tuple[Seed, bytes]:
    """One of the seeds, and what arrives in its contribution's place; now and then the contribution itself."""
    seed = draw.choice(seeds)
    kind = draw.randrange(8)
    if kind == 0:
        return seed, draw.choice(seeds).blob  # somebody else's, or its own
    blob = bytearray(_json_changed(seed.blob, draw) if kind < 4 else seed.blob)
    for _ in range(draw.randrange(4) if kind < 7 else draw.randrange(64)):
        _change(blob, draw, draw.choice(seeds).blob)
    return seed, bytes(blob)


def _change(blob: bytearray, draw: random.Random, other: bytes) -> None:
    """Flips, cuts out, doubles, fills or moves some bytes, or takes them from another contribution."""
    start = draw.randrange(len(blob) + 1)
    end = min(len(blob), start + draw.choice((1, 1, 1, 2, 8, 64, 4096)))
    part = blob[start:end]
    match draw.randrange(6):
        case 0:
            blob[start:end] = bytes(byte ^ (1 << draw.randrange(8)) for byte in part)
        case 1:
            del blob[start:end]
        case 2:
            blob[start:start] = part
        case 3:
            blob[start:end] = bytes([draw.choice((0, 0x22, 0x7B, 0x7F, 0xFF))]) * len(part)
        case 4:
            blob[start:end] = part[::-1]
        case _:
            blob[start:end] = other[start:end]


def _json_changed(blob: bytes, draw: random.Random) -> bytes:
    """The contribution with a right length before a header in which one value is another."""
    (size,) = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8 : 8 + size])
    meta = json.loads(header["__metadata__"]["ferret"])
    target = draw.choice((meta, meta, header, *(entry for name, entry in header.items() if name != "__metadata__")))
    name = draw.choice([*target, "more"])
    if draw.random() < 0.2:
        target.pop(name, None)
    else:
        target[name] = deepcopy(draw.choice(VALUES))
    if "__metadata__" in header and isinstance(header["__metadata__"], dict):
        header["__metadata__"]["ferret"] = json.dumps(meta)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + blob[8 + size :]


def _seeds(say: Say) -> list[Seed]:
    """The contributions of one round of each algorithm."""
    seeds: list[Seed] = []

    def noted(replica: Replica, client: Client) -> Part:
        part = contribute(replica, client)
        seeds.append(Seed(part.sealed.blob, replica.spec, client.task, replica.shapes))
        return part

    with tempfile.TemporaryDirectory(prefix="ferret-bench-") as name:
        workload = Workload(Path(name), 2)
        for label, options in ALGORITHMS.items():
            simulate(workload.spec(1, algorithm={"name": label.partition(",")[0], **options}), participate=noted)
    say(f"{len(seeds)} contributions of {', '.join(ALGORITHMS)}, {sum(len(seed.blob) for seed in seeds):,} bytes")
    return seeds


def _open_all(seeds: list[Seed], count: int, deadline: float, say: Say) -> Found:
    draw, outcomes, untyped, seconds = random.Random(1), Counter[str](), list[str](), array("d")
    after_first_tenth, longest = 0, 0.0
    for number in range(1, count + 1):
        seed, blob = mutated(seeds, draw)
        begin, used = perf_counter(), thread_time()
        outcome = _opened(seed, blob)
        seconds.append(thread_time() - used)
        longest = max(longest, perf_counter() - begin)
        outcomes[outcome] += outcome in TYPED or outcome == "accepted"
        if outcome not in TYPED and outcome != "accepted":
            untyped.append(outcome)
        if number == count // 10:
            after_first_tenth = _most_bytes()
        if number % SAID == 0:
            say(f"{number:,} contributions, {len(untyped)} untyped")
            if perf_counter() > deadline:
                break
    return Found(+outcomes, untyped, seconds, longest, _most_bytes() - after_first_tenth)


def _opened(seed: Seed, blob: bytes) -> str:
    try:
        unseal(blob, seed.spec, seed.task, seed.shapes)
    except FerretError as error:
        return error.code
    except Exception as error:
        return repr(error)[:500]
    return "accepted"


def _most_bytes() -> int:
    """The most memory that the process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _quantile(ordered: list[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
