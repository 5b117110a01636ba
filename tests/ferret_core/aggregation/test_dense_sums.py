"""Simulated experiments whose server learns sums of whole updates alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ferret_core import catalog
from ferret_core.experiment.estimate import Estimate, Speed, TokenLengths, estimate
from ferret_core.ledger.record import LedgerEntry
from ferret_core.models import architecture
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import decode
from ferret_core.replica.replica import Replica, replay
from ferret_core.secure.shares import message_bytes
from ferret_core.simulate import SimulationResult, simulate
from tests.ferret_core.replicas import SpecFactory

pytestmark = pytest.mark.heavy
MASKED = {"aggregation": "masked", "clip": 64.0}
STEP = 64 * 3 / 2**31
"""A step of the grid of three members. It exceeds the rounding of fp32, so the two can be distinguished."""


def run(spec: ExperimentSpec) -> tuple[SimulationResult, list[LedgerEntry]]:
    entries: list[LedgerEntry] = []
    return simulate(spec, on_update=entries.append), entries


def update_of(entry: LedgerEntry) -> Any:
    return decode(entry.update)[0]["update"].astype(np.float64)


@pytest.mark.parametrize("algorithm", ["fedavg", "fedit"])
def test_a_masked_experiment_learns_as_one_whose_server_reads_all(toy_spec: SpecFactory, algorithm: str) -> None:
    """The mean differs by the grid's rounding: uniform between ± a step in each of three updates."""
    spec = toy_spec(algorithm, rounds=2, secure=MASKED)
    (masked, entries), (plain, expected) = run(spec), run(toy_spec(algorithm, rounds=2))
    off = update_of(entries[0]) - update_of(expected[0])
    assert np.abs(off).max() < STEP
    assert math.sqrt(np.square(off).mean()) == pytest.approx(STEP / math.sqrt(18), rel=0.05)
    assert abs(off.mean()) < 4 * STEP / math.sqrt(18 * len(off)), "no bias"
    for ours, theirs in zip(masked.rounds[1:], plain.rounds[1:], strict=True):
        assert ours.metrics["eval_loss"] == pytest.approx(theirs.metrics["eval_loss"], rel=1e-5)
        assert ours.metrics["train_loss"] == pytest.approx(theirs.metrics["train_loss"], abs=2**-15)
        assert ours.metrics["clipped_weights"] == 0
    assert [record.digest for record in replay(Replica.load(catalog.resolve(spec).spec), entries)][-1] == masked.digest


def test_a_plan_has_the_bytes_of_whole_updates_under_masks(toy_spec: SpecFactory) -> None:
    masked, plain = toy_spec("fedavg", rounds=1, secure={**MASKED, "clip": 1e-3}), toy_spec("fedavg", rounds=1)
    done, _ = run(masked)
    assert done.rounds[1].metrics["clipped_weights"] > 50, "four steps of Adam at a rate of 0.01"
    ours, theirs = plan_of(masked), plan_of(plain)
    assert ours.bytes_up == done.rounds[1].bytes_up / 3
    assert ours.bytes_up > 4 * ours.d + message_bytes(3)
    assert ours.bytes_down == theirs.bytes_down
    assert ours.sums is not None
    assert (ours.sums.bits, ours.sums.plain_bytes, ours.sums.most_noise) == (32, theirs.bytes_up, None)
    assert (ours.aggregate_memory_bytes or 0) - (theirs.aggregate_memory_bytes or 0) == 4 * ours.d
    assert plan_of(toy_spec("fedit", secure=MASKED)).bytes_up is None, "known once the adapters are there"


def plan_of(spec: ExperimentSpec) -> Estimate:
    outline, lengths = architecture.of_folder(spec.model.source), TokenLengths(64, 32, 64)
    return estimate(catalog.resolve(spec), outline, None, lengths, Speed.assumed(1e12))
