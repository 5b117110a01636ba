from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from ferret_cli import plot_style
from ferret_cli.tune.plan import Plan, read
from ferret_cli.tune.plot import draw
from ferret_cli.tune.trial import Trial

RATE, CLIP = "algorithm.local.learning_rate", "algorithm.local.clip_norm"


@pytest.fixture
def plan(tune_file: Callable[..., Path]) -> Plan:
    lines = f"{RATE} = {{ log = [1e-4, 1e-1] }}", f"{CLIP} = {{ choice = [0.1, 1.0], unset = true }}"
    return read(tune_file(*lines), ["name='what costs $5 or $6'"])


def trial(number: int, state: Any = "complete", *scores: float, curve: Any = None) -> Trial:
    values = {RATE: 10 ** -(1 + number % 3), CLIP: ["0.1", "1.0", "unset"][number % 3]}
    return Trial(number, values, state, scores, curve or {}, 3, None)


def test_a_bar_longer_than_the_panel_is_cut(plan: Plan) -> None:
    assert drawn(plan, [trial(1, "complete", 3.2433, 4.4204)]).axes


def drawn(plan: Plan, trials: list[Trial]) -> Figure:
    with plot_style.applied():
        figure = draw(plan, trials)
        assert plot_style.png(figure).startswith(b"\x89PNG")
    return figure


def marks(axes: Any) -> dict[str, list[tuple[float, float]]]:
    """By marker, where they are."""
    found: dict[str, list[tuple[float, float]]] = {}
    for line in axes.lines:
        if len(line.get_xdata()) == 1 and line.get_marker() in "ox*v":
            found.setdefault(line.get_marker(), []).append((float(line.get_xdata()[0]), float(line.get_ydata()[0])))
    return found


def test_states_have_marks_of_their_own_and_each_dimension_a_panel(plan: Plan) -> None:
    trials = [
        trial(1, "complete", 3.0, 5.0),
        trial(2, "pruned", curve={1: 4.5}),
        trial(3, "failed"),
        trial(4, "complete", 2.0),
    ]
    figure = drawn(plan, trials)
    history, rates, clips = figure.axes
    top = history.get_ylim()[1]
    assert marks(history) == {"o": [(1, 4.0)], "x": [(2, 4.5)], "v": [(3, top)], "*": [(4, 2.0)]}
    assert (rates.get_xlabel(), rates.get_xscale(), clips.get_xlabel()) == ("learning_rate", "log", "clip_norm")
    assert [text.get_text() for text in clips.get_xticklabels()] == ["0.1", "1.0", "unset"]
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == ["complete", "pruned", "failed", "best", "best so far"]


def test_a_trial_that_went_astray_is_at_the_edge_and_squeezes_nothing(plan: Plan) -> None:
    figure = drawn(
        plan, [trial(number, "complete", 2 + number / 10) for number in range(1, 9)] + [trial(9, "complete", 1e6)]
    )
    low, high = figure.axes[0].get_ylim()
    assert 1.5 < low < 2.1
    assert 2.8 < high < 3.5
    assert (9, high) in marks(figure.axes[0])["o"]


@pytest.mark.parametrize(
    "trials", [[], [trial(1, "failed")], [trial(1, "pruned", curve={1: 2.0})], [trial(1, "complete", 0.0)]]
)
def test_every_study_makes_a_picture(plan: Plan, trials: list[Trial]) -> None:
    assert len(drawn(plan, trials).axes) == 3
