"""Poisoners: the damage by a fifth of the participants, compared with the same experiment without them.

Ten simulated clients, two of them hostile, on the demo's tasks with its model and, where the environment names
``MODEL``, ``GSM8K_TRAIN`` and ``GSM8K_TEST``, on GSM8K; by Ferret's one-bit coordinates and by FedAvg, with
the default ``robust.rule`` and with ``cosine_filter``, which the bounds are for. The document holds ``machine`` and
``runs``:

    dataset, algorithm, attack   ``none``: the two take no part
    rule                         ``robust.rule``
    first, loss                  the held-out loss before and after, in nats per token
    over_clean                   relative excess over the loss without the two
    clipped, refused             number of contributions
    failed                       the error of a failed experiment
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, final

from ferret_bench._base import Document, Say, Table, shown
from ferret_bench._poisoners.attacks import ATTACKS, Participate, a_little, absent, poisoned
from ferret_bench.measure.bound import Bound, against, table
from ferret_bench.measure.machine import machine
from ferret_core import sample
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.sample import tasks
from ferret_core.simulate import simulate

CLIENTS = 10
HOSTILE = frozenset({"client-003", "client-007"})
CLEAN = "none"
A_LITTLE = "a little is enough"
BOUNDS = {"over_clean": Bound("<=", 0.05), "failed": Bound("<=", 0)}
RULES = ("clip", "cosine_filter")
COLUMNS = ("dataset", "algorithm", "attack", "rule", "first", "loss", "over_clean", "clipped", "refused", "failed")
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ferret": {"name": "ferret", "basis": "G", "K": 65_536, "allocation": "optimal", "refuse_noisy_rounds": False},
    "fedavg": {"name": "fedavg"},
}


@final
class Benchmark:
    """``ferret bench poisoners``"""

    def run(self, say: Say, *, bounds: bool = False, quick: bool = False, max_seconds: float = 600.0) -> Document:
        begin = perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            runs = list(_runs(Path(folder), 2 if quick else 6, say))
        return {
            "benchmark": "poisoners",
            "asked": {"bounds": bounds, "quick": quick, "max_seconds": max_seconds},
            "machine": machine(),
            "runs": runs,
            "bounds": against(
                BOUNDS,
                {
                    "over_clean": max(run["over_clean"] or 0.0 for run in runs if run["rule"] == "cosine_filter"),
                    "failed": float(sum(run["failed"] is not None for run in runs)),
                },
            ),
            "seconds": perf_counter() - begin,
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        rows = [[shown(run[column]) for column in COLUMNS] for run in document["runs"]]
        return [Table(f"{len(HOSTILE)} of {CLIENTS} participants are hostile", COLUMNS, rows), table(document)]


def _runs(folder: Path, rounds: int, say: Say) -> Iterator[dict[str, Any]]:
    for dataset, base in _datasets(folder).items():
        for name, options in ALGORITHMS.items():
            clean = None
            for attack, rule, participate in _attacks(name):
                say(f"{dataset}, {name}, {attack}, {rule}")
                run = _run(_spec(base, options, rounds, rule), participate)
                clean = run["loss"] if attack == CLEAN else clean
                over = None if run["loss"] is None or clean is None else run["loss"] / clean - 1
                yield {
                    "dataset": dataset,
                    "algorithm": name,
                    "attack": attack,
                    "rule": rule,
                    "over_clean": over,
                    **run,
                }


def _attacks(algorithm: str) -> Iterator[tuple[str, str, Participate]]:
    yield CLEAN, RULES[0], absent(HOSTILE)
    for rule in RULES:
        for name, attack in ATTACKS.items():
            yield name, rule, poisoned(HOSTILE, attack)
        if algorithm == "fedavg":
            yield A_LITTLE, rule, a_little(HOSTILE)


def _datasets(folder: Path) -> dict[str, dict[str, Any]]:
    """By name: model, dataset, partition, and the local training that suits them."""
    tasks.write(folder)
    local = {"optimizer": "adam", "steps": 10, "accumulation": 1, "clip_norm": 1.0}
    found: dict[str, dict[str, Any]] = {
        "demo": {
            "model": {"source": str(sample.model_path())},
            "dataset": {"name": "jsonl", "train": str(folder / "train.jsonl"), "test": str(folder / "test.jsonl")},
            "partition": {"name": "dirichlet", "alpha": 0.5},
            "local": {**local, "learning_rate": 2e-3, "batch_size": 16},
        }
    }
    if {"MODEL", "GSM8K_TRAIN", "GSM8K_TEST"} <= set(os.environ):
        found["gsm8k"] = {
            "model": {"source": os.environ["MODEL"]},
            "dataset": {"name": "gsm8k", "train": os.environ["GSM8K_TRAIN"], "test": os.environ["GSM8K_TEST"]},
            "partition": {"name": "iid"},
            "local": {**local, "learning_rate": 1e-3, "batch_size": 2, "steps": 5},
        }
    return found


def _spec(base: Mapping[str, Any], options: Mapping[str, Any], rounds: int, rule: str) -> ExperimentSpec:
    rest = {name: value for name, value in base.items() if name != "local"}
    return ExperimentSpec.model_validate(
        {
            "name": "poisoners",
            "seed": 7,
            "rounds": rounds,
            "participants": {"simulated": CLIENTS},
            "round": {"quorum": 0.5},
            "robust": {"rule": rule},
            "algorithm": {**options, "local": base["local"]},
            "evaluation": {"every": rounds, "examples": 128, "generate_examples": 0},
            **rest,
        }
    )


def _run(spec: ExperimentSpec, participate: Participate) -> dict[str, Any]:
    try:
        result = simulate(spec, participate=participate)
    except FerretError as error:
        return {"first": None, "loss": None, "clipped": None, "refused": None, "failed": error.detail}
    return {
        "first": result.rounds[0].metrics["eval_loss"],
        "loss": result.rounds[-1].metrics["eval_loss"],
        "clipped": sum(len(record.clipped) for record in result.ledger),
        "refused": sum(len(record.refused) for record in result.ledger),
        "failed": None,
    }
