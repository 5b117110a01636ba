from __future__ import annotations

import pytest

from ferret_bench.reproduce.reruns.quantity import (
    BYTES_DOWN,
    BYTES_UP,
    CONVERGED,
    EVAL_LOSS,
    LOCAL,
    OVERALL,
    PARAMETERS,
    bytes_up,
    scientific,
)
from ferret_bench.reproduce.reruns.records import RoundRecord


@pytest.fixture
def run(toy_grid, ended):
    return lambda losses: ended(toy_grid().cells[0], losses)


def test_the_last_evaluation_counts(run):
    assert EVAL_LOSS.of(run([3.0, 2.0, 2.5])) == 2.5
    assert LOCAL.of(run([3.0])) is None


@pytest.mark.parametrize(
    ("losses", "round"), [([5, 3.04, 3.06, 3], 1), ([5, 3.2, 3.09, 3], 2), ([5, 5, 5], 0), ([5, 6, 7], 0)]
)
def test_converged_is_the_first_round_near_the_best(run, losses, round):
    assert CONVERGED.of(run([float(loss) for loss in losses])) == round


def test_bytes_are_per_participant(run):
    found = run([3.0, 2.0, 1.0])
    assert BYTES_UP.of(found) == 150  # 100 and 200
    assert BYTES_DOWN.of(found) == 400  # the base model and the first round have nothing to catch up with


def test_costs_are_those_of_rounds_that_are_warm(toy_grid):
    seconds = [9.0, 1.0, 3.0, 2.0]
    rounds = [
        RoundRecord(number=n, metrics={"local_seconds": s, "aggregate_seconds": 0.5, "numbers_sent": 7.0})
        for n, s in enumerate(seconds, 1)
    ]
    found = toy_grid().cells[0].record("simulate", 1, {}, rounds=rounds)
    assert LOCAL.of(found) == 2.0
    assert OVERALL.of(found) == 2.5
    assert PARAMETERS.of(found) is None  # what goes down was not measured


@pytest.mark.parametrize(("value", "text"), [(7_800, "7.8×10³"), (6.0e9, "6.0×10⁹"), (2.6e10, "2.6×10¹⁰"), (12, "12")])
def test_counts_are_written_as_in_the_paper(value, text):
    assert scientific(value) == text


def test_what_a_participant_sends_counts_rejected_contributions_too():
    assert bytes_up(RoundRecord(number=1, bytes_up=300, participants=3, accepted=2)) == 100
