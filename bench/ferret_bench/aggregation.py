"""Aggregation of a large model: in mapped files, by one process and by two, beside copying the files.

A LLaMA of random bf16 weights, in files of a GiB at most. A round is what an aggregation worker does to the weights: it
keeps those before, moves the others by the round's update, and takes the digest. The document holds ``machine``,
``bytes`` of the files, ``contributions``, ``copy_seconds`` (median of ``cp -r``, by turns with the rounds), ``ways``
and ``bounds``. Of each way, by name, ``ways`` has medians over the turns:

    move_seconds    the weights before kept, the others moved, in files
    digest_seconds  of the moved model
    ratio           median over the turns of ``move_seconds`` over the time of that turn's copy
    extra_bytes     the most anonymous memory of all its processes during a round, less what they had before it
    digest          after the last round

Own seeds take one pass over the signs of the weights for each contribution, a shared seed one for all. ``memory`` is
the same round on a replica in memory, of which ``extra_bytes`` is with the copy of the weights that it keeps.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, final

from ferret_bench._aggregation.memory import anonymous_bytes
from ferret_bench._aggregation.updates import update
from ferret_bench._base import Document, Say, Table, shown
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.machine import machine
from ferret_bench.measure.sampled import sampled
from ferret_bench.paper.reruns.shapes import model_of
from ferret_core import catalog
from ferret_core.demo import tasks
from ferret_core.mapped.replica import MappedReplica
from ferret_core.models.load import load
from ferret_core.models.save import save
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec
from ferret_core.replica import Replica

PERIOD = 0.005
MEMORY = "memory"
BOUNDS = {"move_vs_copy": Bound("<=", 1.5), "extra_bytes": Bound("<=", 64 << 20), "digests_differ": Bound("<=", 0)}
BOUNDED = "shared seed, 2 processes"


class Size(NamedTuple):
    """How much is measured: a model as ``model_of`` names it, contributions of a round under own seeds, turns."""

    shape: str
    contributions: int
    turns: int


FULL = Size(shape="2048/16", contributions=10, turns=5)
QUICK = Size(shape="64/2", contributions=3, turns=2)
SEEDS = {"shared seed": "shared", "own seeds": "own"}
PROCESSES = {"1 process": 1, "2 processes": 2}


class Turn(NamedTuple):
    """One copy and one round, in seconds, and the round's memory."""

    copy: float
    move: float
    digest: float
    extra: int


@final
class Benchmark:
    """``ferret bench aggregation``"""

    def run(self, say: Say, *, bounds: bool = False, quick: bool = False, max_seconds: float = 600.0) -> Document:
        begin = perf_counter()
        size = QUICK if quick else FULL
        with tempfile.TemporaryDirectory(prefix="ferret-bench-") as scratch:
            folder = Path(scratch)
            say(f"random weights of the shape {size.shape}")
            base = _base(folder, size.shape)
            ways: dict[str, Any] = {}
            copies: list[float] = []
            for seeds, value in list(SEEDS.items())[: 1 if bounds else None]:
                spec = _spec(folder, base, value)
                for processes, number in PROCESSES.items():
                    say(f"{seeds}, {processes}")
                    replica = MappedReplica(spec, base, folder / "mapped", number)
                    ways[f"{seeds}, {processes}"], copied = _way(replica, base, size, replica.pool.children)
                    copies += copied
                    del replica
                say(f"{seeds}, in {MEMORY}")
                ways[f"{seeds}, {MEMORY}"], copied = _way(Replica.load(spec, base), base, size, [])
                copies += copied
            stored = sum(path.stat().st_size for path in base.glob("*.safetensors"))
        return {
            "benchmark": "aggregation",
            "asked": {"bounds": bounds, "quick": quick, "max_seconds": max_seconds},
            "machine": machine(),
            "bytes": stored,
            "contributions": size.contributions,
            "copy_seconds": median(copies),
            "ways": ways,
            "bounds": against(BOUNDS, _bounded(ways)),
            "seconds": perf_counter() - begin,
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        columns = ["way", "move, s", "times cp", "digest, s", "extra memory, MB"]
        rows = [
            [
                name,
                shown(way["move_seconds"]),
                shown(way["ratio"]),
                shown(way["digest_seconds"]),
                f"{way['extra_bytes'] / 1e6:.0f}",
            ]
            for name, way in document["ways"].items()
        ]
        title = f"a round of {document['contributions']} contributions on {document['bytes'] / 1e9:.2f} GB"
        return [Table(title, columns, rows), bound.table(document)]


def _base(folder: Path, shape: str) -> Path:
    """The base model's folder as the service stores it."""
    made = model_of(shape, folder)
    base = folder / "base"
    base.mkdir()
    save(load(ModelSpec(source=str(made), dtype="bfloat16"), anywhere=True), base)
    shutil.rmtree(made)
    return base


def _spec(folder: Path, base: Path, seeds: str) -> ExperimentSpec:
    (folder / "tasks").mkdir(exist_ok=True)
    tasks.write(folder / "tasks", train=20, test=4, edge=1)
    tree = {
        "name": "aggregation",
        "rounds": 100,
        "model": {"source": str(base), "dtype": "bfloat16"},
        "dataset": {
            "name": "jsonl",
            "train": str(folder / "tasks/train.jsonl"),
            "test": str(folder / "tasks/test.jsonl"),
        },
        "participants": {"simulated": 2},
        "algorithm": {"name": "ferret", "coordinates": "float32", "allocation": "uniform", "seeds": seeds},
    }
    return catalog.resolve(ExperimentSpec.model_validate(tree))


def _way(replica: Replica, base: Path, size: Size, children: list[int]) -> tuple[dict[str, Any], list[float]]:
    """What is told of a way, and the seconds of its copies. The first round compiles, and does not count."""
    blob = update(replica.spec, replica.shapes, size.contributions)
    turns = [_turn(replica, base, blob, children) for _ in range(1 + size.turns)][1:]
    found = {
        "move_seconds": median(turn.move for turn in turns),
        "digest_seconds": median(turn.digest for turn in turns),
        "ratio": median(turn.move / turn.copy for turn in turns),
        "extra_bytes": max(turn.extra for turn in turns),
        "digest": replica.digest,
    }
    return found, [turn.copy for turn in turns]


def _turn(replica: Replica, base: Path, blob: bytes, children: list[int]) -> Turn:
    copy = base.with_name("copy")
    begin = perf_counter()
    subprocess.run(["cp", "-r", str(base), str(copy)], check=True)
    copied = perf_counter() - begin
    shutil.rmtree(copy)
    before = anonymous_bytes(children)
    with sampled(lambda: anonymous_bytes(children), PERIOD) as peaks:
        begin = perf_counter()
        standing = replica.standing()
        replica.move(blob)
        moved = perf_counter()
        replica.settle()
        end = perf_counter()
    del standing
    return Turn(copied, moved - begin, end - moved, max(0, max(peaks) - before))


def _bounded(ways: Mapping[str, Any]) -> dict[str, float | None]:
    digests = [{way["digest"] for name, way in ways.items() if name.startswith(seeds)} for seeds in SEEDS]
    return {
        "move_vs_copy": ways[BOUNDED]["ratio"],
        "extra_bytes": max(way["extra_bytes"] for name, way in ways.items() if MEMORY not in name),
        "digests_differ": sum(len(found) - 1 for found in digests if found),
    }
