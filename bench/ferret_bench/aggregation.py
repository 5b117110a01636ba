"""Aggregation of a large model: in mapped files, by one process and by two, compared with copying the files.

LLaMAs of random weights, some 2.3 GB, in files of a GiB at most. A round is an aggregation worker's work on the
weights: it keeps a copy, moves the weights by the round's update, and computes the digest. The document holds
``machine``, ``contributions``, ``ways``, ``base`` and ``bounds``. Of each way, by name, ``ways`` has medians over the
turns:

    bytes           of the weights' files
    copy_seconds    of ``cp -r`` of them, by turns with the rounds
    move_seconds    the copy kept, the weights moved, in files
    digest_seconds  of the moved model
    ratio           median over the turns of ``move_seconds`` over the time of that turn's copy
    extra_bytes     the peak of all its processes' anonymous memory during a round, minus its level before
    digest          after the last round

Own seeds take one pass over the signs of the weights for each contribution, a shared seed one for all. bf16 weights
take 16 random bits each for rounding, fp32 weights none. ``memory`` is the same round on a replica in memory. Its
``extra_bytes`` includes the copy of the weights.

``base`` has, by type, the cost of checking and storing a base model when an experiment is submitted: ``seconds`` and
``extra_bytes``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, final

import numpy as np

from ferret_bench import base
from ferret_bench.base import Asked, Document, Say, Table, shown
from ferret_bench.measure import bound
from ferret_bench.measure.background import sampled
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.memory import anonymous_bytes
from ferret_bench.reproduce.reruns.shapes import model_of
from ferret_core import catalog
from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.load import load
from ferret_core.models.save import save_base
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec
from ferret_core.protocol.wire import encode
from ferret_core.replica.mapped.replica import MappedReplica
from ferret_core.replica.replica import Replica
from ferret_core.sample import tasks
from ferret_core.storage import open_storage
from ferret_worker.storage import store_base

SMALL = 1e-4
"""Size of a coordinate: the step is far shorter than the weights."""


def update(spec: ExperimentSpec, shapes: Mapping[str, tuple[int, ...]], contributions: int) -> bytes:
    """Returns the blob of a round with this number of contributions, in fp32. Under a shared seed they are summed."""
    projection = ResolvedExperiment.of(spec).traits.projection
    assert projection is not None
    blocks = projection.cut(shapes)
    K = projection.allocate([1.0] * len(blocks), blocks)
    senders = 1 if projection.seeds == "shared" else contributions
    drawn = np.random.default_rng(1).standard_normal(senders * sum(K), dtype=np.float32)
    arrays = {
        "seeds": np.arange(senders, dtype=np.uint64),
        "K": np.array([K] * senders, np.int32),
        "weights": np.ones(senders, np.float32),
        "rounding": np.array([1], np.uint64),
        "coordinates": np.float32(SMALL) * drawn,
        "coordinates.lengths": np.full(senders, sum(K), np.int32),
    }
    return encode(arrays, {"round": 1})


PERIOD = 0.005
WARM = 2
MEMORY = "memory"
BOUNDS = {"move_vs_copy": Bound("<=", 1.5), "extra_bytes": Bound("<=", 64 << 20), "digests_differ": Bound("<=", 0)}
BOUNDED = "fp32, shared seed, 2 processes"


class Size(NamedTuple):
    """Sizes: models by type, as named by ``model_of``, contributions under separate seeds, and turns."""

    shapes: Mapping[str, str]
    contributions: int
    turns: int


FULL = Size(shapes={"float32": "1536/12", "bfloat16": "2048/16"}, contributions=10, turns=5)
QUICK = Size(shapes={"float32": "64/2", "bfloat16": "64/2"}, contributions=3, turns=2)
CASES = {
    "fp32, shared seed": ("float32", "shared"),
    "bf16, shared seed": ("bfloat16", "shared"),
    "bf16, own seeds": ("bfloat16", "own"),
}
PROCESSES = {"1 process": 1, "2 processes": 2}


class Turn(NamedTuple):
    """One copy and one round, in seconds, and the round's memory."""

    copy: float
    move: float
    digest: float
    extra: int


@final
class Benchmark(base.Benchmark):
    """``ferret dev bench aggregation``"""

    def measure(self, say: Say, asked: Asked) -> Document:
        size = QUICK if asked.quick else FULL
        with tempfile.TemporaryDirectory(prefix="ferret-bench-") as scratch:
            folder = Path(scratch)
            ways: dict[str, Any] = {}
            stored: dict[str, Any] = {}
            for case, (dtype, seeds) in list(CASES.items())[: 1 if asked.bounds else None]:
                base = _base_model(folder, size.shapes[dtype], dtype)
                spec = _spec(folder, base, dtype, seeds)
                if dtype not in stored:
                    say(f"{dtype}: storing the base model")
                    stored[dtype] = _stored(spec, folder / "storage")
                for processes, number in PROCESSES.items():
                    say(f"{case}, {processes}")
                    replica = MappedReplica(spec, base, folder / "mapped", number)
                    ways[f"{case}, {processes}"] = _way(replica, base, size, replica.pool.children)
                    del replica
                say(f"{case}, in {MEMORY}")
                ways[f"{case}, {MEMORY}"] = _way(Replica.load(spec, base), base, size, [])
        return {
            "contributions": size.contributions,
            "ways": ways,
            "base": stored,
            "bounds": against(BOUNDS, _bounded(ways)),
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        columns = ["way", "GB", "cp, s", "move, s", "times cp", "digest, s", "extra memory, MB"]
        rows = [
            [
                name,
                shown(way["bytes"] / 1e9),
                shown(way["copy_seconds"]),
                shown(way["move_seconds"]),
                shown(way["ratio"]),
                shown(way["digest_seconds"]),
                f"{way['extra_bytes'] / 1e6:.0f}",
            ]
            for name, way in document["ways"].items()
        ]
        rounds = Table(f"a round of {document['contributions']} contributions", columns, rows)
        return [rounds, _storing(document["base"]), bound.table(document)]


def _base_model(folder: Path, shape: str, dtype: str) -> Path:
    """The base model's folder as the service stores it."""
    base = folder / dtype
    if not base.exists():
        made = model_of(shape, folder)
        base.mkdir()
        stored = ModelSpec.model_validate({"source": str(made), "dtype": dtype})
        save_base(load(stored, anywhere=True), base)
        shutil.rmtree(made)
    return base


def _spec(folder: Path, base: Path, dtype: str, seeds: str) -> ExperimentSpec:
    (folder / "tasks").mkdir(exist_ok=True)
    tasks.write(folder / "tasks", train=20, test=4, edge=1)
    tree = {
        "name": "aggregation",
        "rounds": 100,
        "model": {"source": str(base), "dtype": dtype},
        "dataset": {
            "name": "jsonl",
            "train": str(folder / "tasks/train.jsonl"),
            "test": str(folder / "tasks/test.jsonl"),
        },
        "participants": {"simulated": 2},
        "algorithm": {"name": "ferret", "coordinates": "float32", "allocation": "uniform", "seeds": seeds},
    }
    return catalog.resolve(ExperimentSpec.model_validate(tree)).spec


def _stored(spec: ExperimentSpec, root: Path) -> dict[str, Any]:
    """Returns the measurements of storing the base model of ``spec``."""
    with sampled(lambda: anonymous_bytes(os.getpid()), PERIOD) as levels:
        begin = perf_counter()
        store_base(open_storage(root.as_uri()), spec, "e-aggregation")
        seconds = perf_counter() - begin
    shutil.rmtree(root)
    return {"seconds": seconds, "extra_bytes": max(levels) - levels[0]}


def _storing(base: Mapping[str, Any]) -> Table:
    rows = [[dtype, shown(found["seconds"]), f"{found['extra_bytes'] / 1e6:.0f}"] for dtype, found in base.items()]
    return Table("storing the base model", ["type", "s", "extra memory, MB"], rows)


def _way(replica: Replica, base: Path, size: Size, children: list[int]) -> dict[str, Any]:
    """Returns the measurements of a way, without its first rounds, which compile and write files for the first time."""
    blob = update(replica.spec, replica.shapes, size.contributions)
    turns = [_turn(replica, base, blob, children) for _ in range(WARM + size.turns)][WARM:]
    return {
        "bytes": sum(path.stat().st_size for path in base.glob("*.safetensors")),
        "copy_seconds": median(turn.copy for turn in turns),
        "move_seconds": median(turn.move for turn in turns),
        "digest_seconds": median(turn.digest for turn in turns),
        "ratio": median(turn.move / turn.copy for turn in turns),
        "extra_bytes": max(turn.extra for turn in turns),
        "digest": replica.digest,
    }


def _turn(replica: Replica, base: Path, blob: bytes, children: list[int]) -> Turn:
    copy = base.with_name("copy")
    begin = perf_counter()
    subprocess.run(["cp", "-r", str(base), str(copy)], check=True)
    copied = perf_counter() - begin
    shutil.rmtree(copy)
    with sampled(lambda: anonymous_bytes(os.getpid(), *children), PERIOD) as levels:
        begin = perf_counter()
        state = replica.snapshot()
        replica.apply(blob)
        moved = perf_counter()
        replica.update_digest()
        end = perf_counter()
    del state
    return Turn(copied, moved - begin, end - moved, max(levels) - levels[0])


def _bounded(ways: Mapping[str, Any]) -> dict[str, float | None]:
    digests = [{way["digest"] for name, way in ways.items() if name.startswith(case)} for case in CASES]
    return {
        "move_vs_copy": ways[BOUNDED]["ratio"],
        "extra_bytes": max(way["extra_bytes"] for name, way in ways.items() if MEMORY not in name),
        "digests_differ": sum(len(found) - 1 for found in digests if found),
    }
