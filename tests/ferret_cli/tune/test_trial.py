from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferret_cli.tune.trial import Trial, best, ranked, standard_error

reals = st.floats(-1e6, 1e6)


def trial(number: int, *scores: float, state: str = "complete") -> Trial:
    curve = {1: 9.0, 2: 8.0} if state == "pruned" else {}
    return Trial(number, {}, state, scores, curve, 1, None)


@given(st.lists(reals, min_size=2, max_size=9))
def test_the_error_of_the_mean_is_the_deviation_over_the_root_of_n(scores: list[float]) -> None:
    found = trial(1, *scores)
    assert found.value == pytest.approx(np.mean(scores), abs=1e-6)
    assert found.error == pytest.approx(np.std(scores, ddof=1) / np.sqrt(len(scores)), abs=1e-6)


def test_one_run_has_no_error() -> None:
    assert standard_error([3.0]) is None
    assert trial(1, 2.0, 4.0).error == 1.0


def test_trials_are_ranked_by_their_means_and_those_without_come_last() -> None:
    trials = [
        trial(1, state="failed"),
        trial(2, 3.0, 5.0),
        trial(3, state="pruned"),
        trial(4, 1.0, 2.0),
        trial(5, 4.0, 4.0),
    ]
    assert [found.number for found in ranked(trials, highest=False)] == [4, 2, 5, 3, 1]
    assert [found.number for found in ranked(trials, highest=True)] == [2, 5, 4, 3, 1]
    assert best(trials, highest=False) is trials[3]
    assert best([trials[0], trials[2]], highest=False) is None
    assert (trials[2].value, trials[2].reached, trials[0].reached) == (None, 8.0, None)
