from __future__ import annotations

import itertools

from ferret_core.protocol.states import MOVES, AssignmentState, ExperimentState, RoundState, may_move


def test_of_what_is_finished_only_a_completed_experiment_runs_again_and_only_what_was_accepted_is_left_out() -> None:
    finished = [s for s in (*ExperimentState, *AssignmentState) if s.finished]
    finished += [RoundState.COMMITTED, RoundState.ABANDONED]
    everything = [*ExperimentState, *RoundState, *AssignmentState]
    left = [(before, after) for before, after in itertools.product(finished, everything) if may_move(before, after)]
    again = (ExperimentState.COMPLETED, ExperimentState.RUNNING)
    assert left == [again, (AssignmentState.ACCEPTED, AssignmentState.REJECTED)]


def test_moves_stay_within_one_kind() -> None:
    assert all(type(after) is type(before) for before, afters in MOVES.items() for after in afters)
