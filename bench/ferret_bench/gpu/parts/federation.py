"""A whole federated run on the GPU, replayed on the processor from its ledger: the same digests, round by round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, final

from ferret_bench.base import Table
from ferret_bench.gpu.part import GSM8K, Done, Found, Setup, Step
from ferret_bench.reproduce.reruns.shapes import model_of
from ferret_cli.output import say
from ferret_cli.requirements_check import require_server
from ferret_core.ledger.record import LedgerEntry
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica, replay
from ferret_core.simulate import simulate

SHAPES = ("llama2-7b", "llama-3b")
LOCAL = {
    "steps": 10,
    "batch_size": 4,
    "accumulation": 1,
    "precision": "bfloat16",
    "optimizer_in_backward": True,
    "activation_checkpointing": True,
}


@final
class Part:
    title = "A whole federated run"
    lead = (
        "Ferret's defaults on models of random weights, two simulated participants, then the ledger followed on the "
        "processor. The service's run is `ferret demo` with its workers on the GPU."
    )
    seconds = 480.0

    def steps(self, setup: Setup) -> Mapping[str, Step]:
        shapes = ("64/1",) if setup.miniature else SHAPES
        runs: dict[str, Step] = {shape: partial(_run, shape) for shape in shapes}
        return runs if setup.miniature else {**runs, "service": _service}

    def tables(self, done: Done) -> Sequence[Table]:
        runs = [
            [
                step,
                found["rounds"],
                found["train_seconds"],
                found["replay_seconds"],
                found["loss"],
                found["digest"][:16],
            ]
            for step, found in done.items()
            if "digest" in found
        ]
        columns = ["model", "rounds", "s on the GPU", "s of the replay", "loss", "digest on both"]
        service = [[found["state"], found["seconds"]] for step, found in done.items() if step == "service"]
        return [Table("", columns, runs), *([Table("The service:", ["state", "seconds"], service)] if service else [])]


def spec(shape: str, setup: Setup) -> ExperimentSpec:
    """Returns the specification: GSM8K if the official files are there, otherwise the demo's tasks."""
    folder = setup.official or setup.toy_data()
    dataset: dict[str, Any] = {"name": "jsonl", "train": "train.jsonl", "test": "test.jsonl"}
    if setup.official is not None:
        dataset = {"name": "gsm8k", "train": GSM8K[0], "test": GSM8K[1]}
    for option in ("train", "test"):
        path = folder / dataset[option]
        dataset[option] = str(path if path.exists() else path.with_name(f"{path.name}.gz"))
    local = {**LOCAL, "steps": 2} if setup.miniature else LOCAL
    tree = {
        "name": f"a federated run of {shape}",
        "seed": 1,
        "rounds": 2,
        "model": {"source": str(model_of(shape, setup.scratch)), "dtype": "bfloat16"},
        "dataset": dataset,
        "participants": {"simulated": 2},
        "algorithm": {"name": "ferret", "refuse_noisy_rounds": False, "local": local},
        "evaluation": {"examples": 16, "generate_examples": 0},
    }
    return ExperimentSpec.model_validate(tree)


def _run(shape: str, setup: Setup) -> Found:
    """Runs it. Raises ``ledger.broken`` if the processor's model differs from the GPU's."""
    asked, entries = spec(shape, setup), list[LedgerEntry]()
    begin = perf_counter()
    result = simulate(asked, on_update=entries.append, on_round=lambda done: say(f"round {done.number}: {done.digest}"))
    trained = perf_counter()
    replica = Replica.load(asked)
    for record in replay(replica, entries):
        say(f"round {record.round} on the processor: {record.digest}")
    assert replica.digest == result.digest
    return {
        "rounds": len(entries),
        "digest": result.digest,
        "loss": result.rounds[-1].metrics["eval_loss"],
        "train_seconds": trained - begin,
        "replay_seconds": perf_counter() - trained,
        "cost": result.rounds[-1].cost,
    }


def _service(setup: Setup) -> Found:
    """Runs ``ferret demo --once`` in a new home."""
    require_server()
    begin = perf_counter()
    with tempfile.TemporaryDirectory(prefix="ferret-gpu-") as home:
        environment = {**os.environ, "FERRET_DEVICE": setup.device.type}
        command = [sys.executable, "-m", "ferret_cli", "demo", "--once", "--json", "--home", home]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    return {"state": found["state"], "seconds": perf_counter() - begin, "run": found}
