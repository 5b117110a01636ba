"""Which round is the best, and when waiting for a better one ends."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import pytest
from pydantic import ValidationError

from ferret_core.protocol.spec import ExperimentSpec, StoppingSpec
from ferret_core.rounds import sampling
from ferret_core.rounds.early_stopping import decline, ranked, stop
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

NAN = math.nan


def ends(values: list[float], since: int = 0, **stopping: Any) -> int | None:
    """The round after which an experiment with these values, the first being the base model's, ends early."""
    known = accumulate(enumerate(values), lambda so_far, point: so_far | dict([point]), initial=dict[int, float]())
    reasons = (stop(StoppingSpec(**stopping), so_far, since) for so_far in known)
    return next((reason.round for reason in reasons if reason), None)


@pytest.mark.parametrize(
    ("values", "stopping", "round"),
    [
        ([3.0, 2.0, 1.0, 0.5], {"patience": 1}, None),
        ([3.0, 2.0, 2.0, 2.0], {"patience": 1}, 2),
        ([3.0, 2.0, 2.5, 2.2, 1.9], {"patience": 3}, None),
        ([3.0, 2.0, 2.5, 2.2, 2.1], {"patience": 3}, 4),
        ([1.0, 2.0, 3.0], {"patience": 2}, 2),
        ([3.0, 2.95, 2.9, 2.85], {"patience": 2, "min_delta": 0.2}, 2),
        ([3.0, 2.95, 2.7, 2.65], {"patience": 2, "min_delta": 0.2}, None),
        ([3.0, 2.5, 2.0], {"patience": 1, "min_delta": 0.5}, 1),
        ([10.0, 20.0, 30.0], {"patience": 1, "metric": "rouge_l"}, None),
        ([10.0, 20.0, 15.0], {"patience": 1, "metric": "rouge_l"}, 2),
        ([3.0, 2.0, 2.5, 2.5], {}, None),
    ],
)
def test_it_ends_once_patience_is_used_up(values: list[float], stopping: dict[str, Any], round: int | None) -> None:
    assert ends(values, **stopping) == round


@pytest.mark.parametrize("nothing", [NAN, math.inf, -math.inf])
def test_what_is_not_a_number_is_never_an_improvement(nothing: float) -> None:
    assert ends([3.0, nothing, nothing], patience=2) == 2
    assert ends([3.0, nothing, 2.0, nothing], patience=2) is None
    assert ends([NAN, NAN, NAN], patience=2) is None, "there is no best round to end with"
    assert [best.round for best in ranked(StoppingSpec(), {0: nothing, 1: 3.0, 2: nothing})] == [1]


def test_rounds_that_were_not_evaluated_use_up_no_patience() -> None:
    every_third = {0: 3.0, 3: 2.0, 6: 2.5}
    assert stop(StoppingSpec(patience=2), every_third) is None
    reason = stop(StoppingSpec(patience=2), every_third | {9: 2.4})
    assert reason is not None
    assert reason.detail == "stopped early: eval_loss has not improved for 6 rounds; best in round 3"


def test_after_it_was_asked_to_go_on_patience_begins_anew_and_the_best_stays() -> None:
    assert ends([3.0, 2.0, 2.5, 2.4], since=3, patience=2) is None
    assert ends([3.0, 2.0, 2.5, 2.4, 2.3, 2.2], since=3, patience=2) == 5
    assert ends([3.0, 2.0, 2.5, 2.4, 1.9, 2.2], since=3, patience=2) is None


def test_of_equals_the_first_is_the_best() -> None:
    assert [best.round for best in ranked(StoppingSpec(), {0: 3.0, 2: 1.0, 1: 1.0, 3: 2.0})] == [1, 2, 3, 0]
    scores = ranked(StoppingSpec(metric="rouge_l"), {0: 3.0, 1: 9.0, 2: 9.0})
    assert [(best.round, best.value) for best in scores] == [(1, 9.0), (2, 9.0), (0, 3.0)]


@pytest.mark.parametrize(
    ("values", "stopping", "best", "said"),
    [
        ({0: 3.0, 1: 2.0}, {}, None, ""),
        ({0: 3.0, 1: 2.0, 2: 2.01}, {"min_delta": 0.1}, None, ""),
        (
            {0: 3.0, 1: 2.0, 3: 2.5},
            {},
            1,
            "Evaluation loss is 2.5000 after round 3, worse than 2.0000 after round 1, the best",
        ),
        (
            {0: 3.0, 1: 2.0, 2: 3.5},
            {},
            1,
            (
                "Evaluation loss is 3.5000 after round 2, worse than the base model with 3.0000; "
                "2.0000 after round 1 is the best"
            ),
        ),
        (
            {0: 35.0, 1: 9.5},
            {"metric": "rouge_l", "min_delta": 50.0},
            0,
            "Rouge-L is 9.5 % after round 1, worse than the base model with 35.0 %; no round is better than it",
        ),
        ({0: NAN, 1: 3.0, 2: 2.0}, {}, None, ""),
        ({}, {}, None, ""),
    ],
)
def test_an_end_worse_than_the_base_model_or_the_best_round_is_named(
    values: dict[int, float], stopping: dict[str, Any], best: int | None, said: str
) -> None:
    found = decline(StoppingSpec(**stopping), values)
    assert (found and (found.best.round, found.detail)) == (None if best is None else (best, said))


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("eval_los", "did you mean eval_loss?"),
        ("rougeL", "did you mean rouge_l?"),
        ("train_loss", "did you mean eval_loss?"),
        ("zzz", "choose from eval_loss, rouge_l, rouge_l_paper, exact_match"),
    ],
)
def test_a_metric_that_no_evaluation_measures_is_refused(metric: str, said: str) -> None:
    with pytest.raises(ValidationError, match="no evaluation measures it") as caught:
        StoppingSpec(metric=metric)
    assert said in str(caught.value)


def test_every_evaluated_round_is_saved_if_it_may_be_the_last(toy_spec: SpecFactory) -> None:
    spec = toy_spec(rounds=9, checkpoint={"every": 4}, evaluation={"every": 3})
    saved = {
        patience: [n for n in range(10) if sampling.checkpoint_due(_patient(spec, patience), n)]
        for patience in (None, 1)
    }
    assert saved == {None: [0, 4, 8, 9], 1: [0, 3, 4, 6, 8, 9]}


def _patient(spec: ExperimentSpec, patience: int | None) -> ExperimentSpec:
    return spec.model_copy(update={"stopping": StoppingSpec(patience=patience)})


@pytest.mark.heavy
def test_a_simulation_ends_early_with_the_model_of_that_round(toy_spec: SpecFactory) -> None:
    spec = toy_spec(rounds=5, stopping={"patience": 2, "min_delta": 100})
    stopped = simulate(spec)
    assert stopped.stopped is not None
    assert (len(stopped.rounds), len(stopped.ledger), stopped.stopped.round) == (3, 2, 2)
    assert stopped.digest == simulate(toy_spec(rounds=2)).digest
    whole = simulate(toy_spec(rounds=2, stopping={"patience": 2, "min_delta": 100}))
    assert whole.stopped is None, "all rounds were there"


def test_a_metric_that_the_data_do_not_give_is_named_before_the_first_round(toy_spec: SpecFactory) -> None:
    with refused("spec.invalid", "was not measured for the base model") as caught:
        simulate(toy_spec(stopping={"metric": "exact_match", "patience": 1}))
    assert "use one of eval_loss, rouge_l, rouge_l_paper" in str(caught.value)
