"""Poisoners: the damage by a fifth of the participants, compared with the same experiment without them.

Ten simulated clients, two of them hostile, on the demo's tasks with its model and, where the environment names
``MODEL``, ``GSM8K_TRAIN`` and ``GSM8K_TEST``, on GSM8K; by Ferret's one-bit coordinates and by FedAvg, with
the default ``robust.rule`` and with ``agree``, which the bounds are for. The document holds ``machine`` and
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
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, final

import numpy as np

from ferret_bench._base import Document, Say, Table, shown
from ferret_bench.measure.bound import Bound, against, table
from ferret_bench.measure.machine import machine
from ferret_core import sample
from ferret_core.algorithms._base import Client
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.contribution import open_contribution
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Array, Contribution
from ferret_core.replica.replica import Replica
from ferret_core.sample import tasks
from ferret_core.simulate import simulate

Attack = Callable[[Contribution], Contribution]
Participate = Callable[[Replica, Client], LocalRound]

DEVIATIONS = 1.5
SIGNS = "coordinates"


def sign_flip(sent: Contribution) -> Contribution:
    """Returns the update with its sign flipped, at the same length."""
    return _changed(sent, lambda values: -values, flipped=True)


def scaled(doublings: int) -> Attack:
    """Multiplies the update by 2ⁿ."""
    return lambda sent: _changed(sent, lambda values: np.ldexp(values, doublings), doublings=doublings)


def flipped_and_scaled(doublings: int) -> Attack:
    """Multiplies the update by −2ⁿ."""
    return lambda sent: scaled(doublings)(sign_flip(sent))


def noise(sent: Contribution) -> Contribution:
    """Returns random numbers with the update's scales, different for each participant and round."""
    draws = np.random.default_rng([sent.meta.round, *sent.meta.participant.encode()])
    arrays = dict(sent.arrays)
    for name, array in sent.arrays.items():
        if array.dtype == np.float32:
            arrays[name] = draws.normal(0, array.std(), array.shape).astype(np.float32)
    if arrays.get(SIGNS, np.zeros(0)).dtype == np.uint8:
        bits = draws.integers(0, 2, sum(sent.meta.K or ()), dtype=np.uint8)
        arrays[SIGNS] = np.packbits(bits)
    return Contribution(sent.meta, arrays)


ATTACKS: dict[str, Attack] = {
    "sign flip": sign_flip,
    "sign flip × 8": flipped_and_scaled(3),
    "scale × 8192": scaled(13),
    "noise": noise,
}


def absent(names: Collection[str]) -> Participate:
    """Removes the contributions of ``names``."""

    def participate(replica: Replica, client: Client) -> LocalRound:
        if client.task.participant in names:
            raise FerretError("training.non_finite", f"{client.task.participant} does not take part")
        return contribute(replica, client)

    return participate


def poisoned(names: Collection[str], attack: Attack) -> Participate:
    """Applies ``attack`` to the contributions of ``names``."""

    def participate(replica: Replica, client: Client) -> LocalRound:
        part = contribute(replica, client)
        return _resealed(replica, client, part, attack) if client.task.participant in names else part

    return participate


def a_little(names: Collection[str]) -> Participate:
    """Sends the same update from all colluders, who know all other contributions of the previous round: their mean
    minus ``DEVIATIONS`` standard deviations, in every coordinate. Only whole updates are comparable by coordinate.

    Baruch et al., "A Little Is Enough: Circumventing Defenses For Distributed Learning", NeurIPS 2019,
    https://arxiv.org/abs/1902.06156.
    """
    before: list[Array] = []
    now: list[Array] = []
    current = 0

    def participate(replica: Replica, client: Client) -> LocalRound:
        nonlocal current, before, now
        if client.task.round != current:
            current, before, now = client.task.round, now, []
        part = contribute(replica, client)
        if client.task.participant not in names:
            now.append(part.sealed.contribution.arrays["update"])
            return part
        if not before:
            return part
        others = np.stack(before)
        crafted = others.mean(axis=0) - DEVIATIONS * others.std(axis=0)
        return _resealed(replica, client, part, lambda sent: Contribution(sent.meta, {"update": crafted}))

    return participate


def _resealed(replica: Replica, client: Client, part: LocalRound, attack: Attack) -> LocalRound:
    blob = attack(part.sealed.contribution).encode()
    return part._replace(sealed=open_contribution(blob, replica.experiment, client.task, replica.shapes))


def _changed(
    sent: Contribution, change: Callable[[Array], Array], *, flipped: bool = False, doublings: int = 0
) -> Contribution:
    """Applies ``change`` to fp32 numbers, or to the bits and the scales' exponents of one-bit coordinates."""
    arrays = {name: change(array) if array.dtype == np.float32 else array for name, array in sent.arrays.items()}
    if SIGNS in arrays and arrays[SIGNS].dtype == np.uint8 and flipped:
        arrays[SIGNS] = np.packbits(1 - np.unpackbits(arrays[SIGNS], count=sum(sent.meta.K or ())))
    if "exponent" in arrays:
        arrays["exponent"] = arrays["exponent"] + np.int32(doublings)
    return Contribution(sent.meta, arrays)


CLIENTS = 10
HOSTILE = frozenset({"client-003", "client-007"})
CLEAN = "none"
A_LITTLE = "a little is enough"
BOUNDS = {"over_clean": Bound("<=", 0.05), "failed": Bound("<=", 0)}
RULES = ("clip", "agree")
COLUMNS = ("dataset", "algorithm", "attack", "rule", "first", "loss", "over_clean", "clipped", "refused", "failed")
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ferret": {"name": "ferret", "basis": "G", "K": 65_536, "allocation": "optimal", "guard": False},
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
                    "over_clean": max(run["over_clean"] or 0.0 for run in runs if run["rule"] == "agree"),
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
            "evaluation": {"every": rounds, "examples": 128, "generate": 0},
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
