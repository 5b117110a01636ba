from __future__ import annotations

from ferret_cli.experiment_tables import (
    cost_rows,
    group_row,
    label_rows,
    list_row,
    metrics_rows,
    overview_rows,
    rejection_rows,
    round_rows,
)
from ferret_core.protocol.resources.experiments import Experiment, ExperimentGroup, ListedExperiment
from ferret_core.protocol.resources.rounds import Rejection, Round
from tests import documents


def a_round(number: int, **metrics: float) -> Round:
    return Round.model_validate(documents.round_(number, participants=4, accepted=2, rejected=2, metrics=metrics))


def test_costs_are_medians_for_one_participant() -> None:
    rounds = [
        a_round(number, local_seconds=seconds, bytes_up=20_000, bytes_down=400, numbers_sent=62_920)
        for number, seconds in enumerate((30.0, 2.0, 3.0), start=1)
    ]
    assert list(cost_rows(rounds)) == [
        ("Local update", "3 s"),
        ("Numbers sent, each", "62,920"),
        ("Bytes sent, each", "10.0 kB"),
        ("Bytes received, each", "100 B"),
    ]


def test_labels_are_those_of_the_last_evaluated_round() -> None:
    first = {"eval_loss": 3.0, "eval_loss/b": 4.0, "eval_loss/a/c": 2.0, "rouge_l/b": 10.0}
    rounds = [a_round(1, **first), a_round(2, train_loss=2.0)]
    assert list(label_rows(rounds)) == [("a/c", "2.0000", None), ("b", "4.0000", "10.0 %")]
    assert list(label_rows([a_round(1, eval_loss=3.0)])) == []


def an_experiment(**changes: object) -> Experiment:
    return Experiment.model_validate(documents.experiment(metrics={}) | changes)


def a_listed_one(**changes: object) -> ListedExperiment:
    return ListedExperiment.model_validate(documents.listed_experiment(metrics={}) | changes)


def test_tags_and_notes_are_shown_where_there_are_any() -> None:
    assert list_row(a_listed_one(tags=["hearts", "K search"]))[-1] == "hearts, K search"
    rows = dict(overview_rows(an_experiment(tags=["hearts"], notes="as *before*")))
    assert (rows["tags"], rows["notes"]) == ("hearts", "as *before*")
    assert {"tags", "notes"}.isdisjoint(dict(overview_rows(an_experiment())))


def test_a_result_that_is_not_the_best_offers_the_best_round() -> None:
    rows = [
        dict(overview_rows(an_experiment(decline={"round": 3, "detail": "worse", "best": a_best(number)})))["result"]
        for number in (0, 2)
    ]
    named = an_experiment().id
    assert rows == ["worse", f"worse; ferret experiment export {named} FOLDER --round 2"]


def a_best(number: int) -> dict[str, object]:
    return {"metric": "eval_loss", "round": number, "value": 2.0}


def test_a_group_is_told_by_mean_and_deviation() -> None:
    newest = a_listed_one(name="seed 3").model_dump()
    loss, rouge = {"mean": 1.9, "sd": 0.12, "count": 3}, {"mean": 35.24, "sd": None, "count": 1}
    metrics = {"eval_loss": {"last": loss, "best": None}, "rouge_l": {"last": rouge, "best": None}}
    group = {"key": "ab", "count": 3, "states": {"completed": 2, "running": 1}, "newest": newest}
    row = group_row(ExperimentGroup.model_validate({**group, "metrics": metrics, "bytes_up": 0, "bytes_down": 0}))
    assert row[1:7] == ("seed 3", 3, "2 completed, 1 running", "ferret", "1.9000 ± 0.1200", "35.2 %")


def test_what_stalls_is_listed_as_stalled_and_shown_with_what_to_do() -> None:
    stalled = {"code": "participants.missing", "detail": "1 of 2 have joined", "since": "2026-01-01T08:00:00Z"}
    experiment = an_experiment(stalled=stalled)
    assert list_row(a_listed_one(stalled="participants.missing"))[2] == "stalled"
    rows = dict(overview_rows(experiment))
    assert rows["state"] == "running"
    assert rows["stalled"] == "since 2026-01-01 08:00 UTC: 1 of 2 have joined (participants.missing)"
    assert "stalled" not in dict(overview_rows(an_experiment()))


def test_metrics_have_units_and_a_best_value_only_where_a_round_can_be_better() -> None:
    scores = {"first": 12.3456, "last": 35.2409, "best": 40.0}
    found = {"rouge_l": scores, "eval_loss": {"first": 2.7, "last": 1.5, "best": 1.25}, "own": scores | {"best": None}}
    metrics = found | {"truncated": {"first": 0, "last": 3, "best": None}, "bytes_down": scores}
    assert list(metrics_rows(an_experiment(metrics=metrics))) == [
        ("eval_loss", "2.7000", "1.5000", "1.2500"),
        ("own", "12.35", "35.24", None),
        ("rouge_l", "12.3 %", "35.2 %", "40.0 %"),
        ("truncated", "0", "3", None),
    ]
    assert list_row(a_listed_one(metrics=metrics))[5:7] == ("1.5000", "35.2 %")


def test_where_a_clone_comes_from_and_what_was_put_away_are_shown() -> None:
    rows = dict(overview_rows(an_experiment(cloned_from="exp_0000000000000000", archived_at="2026-01-02T00:00:00Z")))
    assert (rows["cloned from"], rows["archived"]) == ("exp_0000000000000000", "2026-01-02 00:00 UTC")


def test_refused_uploads_are_shown_with_their_reason() -> None:
    refused = {
        "participant": "site-1",
        "display_name": "clinic",
        "round": 2,
        "code": "round.closed",
        "detail": "too late",
        "count": 3,
        "created_at": documents.TIME,
        "updated_at": documents.TIME,
    }
    rows = list(rejection_rows([Rejection.model_validate(refused)]))
    assert rows == [(2, "clinic", 3, "round.closed", "too late")]


def test_a_round_that_was_tried_again_says_so() -> None:
    again = a_round(2).model_copy(update={"attempt": 2})
    assert [row[0] for row in round_rows([a_round(1), again])] == ["1", "2, attempt 2"]
