from __future__ import annotations

import itertools

from ferret_core.protocol.states import MOVES, AssignmentState, ExperimentState, RoundState, may_move


def test_a_finished_state_is_never_left() -> None:
    finished = [s for s in (*ExperimentState, *AssignmentState) if s.finished]
    finished += [RoundState.COMMITTED, RoundState.ABANDONED]
    everything = [*ExperimentState, *RoundState, *AssignmentState]
    assert not any(may_move(before, after) for before, after in itertools.product(finished, everything))


def test_moves_stay_within_one_kind() -> None:
    assert all(type(after) is type(before) for before, afters in MOVES.items() for after in afters)
