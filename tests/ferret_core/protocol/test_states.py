from __future__ import annotations

import itertools

from ferret_core.protocol.states import MOVES, AssignmentState, ExperimentState, RoundState, may_move


def test_only_a_completed_experiment_leaves_its_end_and_runs_again() -> None:
    finished = [s for s in (*ExperimentState, *AssignmentState) if s.finished]
    finished += [RoundState.COMMITTED, RoundState.ABANDONED]
    everything = [*ExperimentState, *RoundState, *AssignmentState]
    left = [(before, after) for before, after in itertools.product(finished, everything) if may_move(before, after)]
    assert left == [(ExperimentState.COMPLETED, ExperimentState.RUNNING)]


def test_moves_stay_within_one_kind() -> None:
    assert all(type(after) is type(before) for before, afters in MOVES.items() for after in afters)
