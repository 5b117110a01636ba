"""What the dashboard and the API read: rounds, contributions, curves, files, ledger, events, gauges."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import RoundState
from ferret_db.database import Database
from ferret_db.engine import assignments
from ferret_db.engine import rounds as engine
from ferret_db.repositories import artifacts, contributions, events, gauges, ledger, metric_series, metrics, rounds
from ferret_db.repositories.metrics import MetricSummary
from ferret_db.repositories.rounds import TrafficTotals
from ferret_db.tables import Experiment
from tests.ferret_db.conftest import pages
from tests.refusals import refused

pytestmark = pytest.mark.about_database


@pytest.fixture
def experiment(database: Database, lab: Any) -> Experiment:
    """Two rounds committed, a third open with one of three accepted and one rejected."""
    experiment = lab.start(rounds=3)
    with database.begin() as s:
        engine.record_evaluation(s, experiment.id, 0, {"eval_loss": 3.0, "rouge_l": 10.0})
    for number, loss, rouge in ((1, 2.0, 30.0), (2, 2.5, 20.0)):
        lab.commit(lab.freeze(lab.get(experiment), number), train_loss=loss)
        with database.begin() as s:
            engine.record_evaluation(s, experiment.id, number, {"eval_loss": loss, "rouge_l": rouge})
    accepted, refused, _ = lab.assignments(lab.open(lab.get(experiment), number=3))
    lab.deliver(accepted)
    leased = lab.lease(refused)
    with database.begin() as s:
        assignments.reject(s, leased.id, leased.fence, FerretError("contribution.malformed", "three bytes"))
    return lab.get(experiment)


def test_rounds_come_with_counts_and_metrics(database: Database, experiment: Experiment) -> None:
    with database.read() as s:
        first = rounds.list_page(s, experiment.id, 2)
        second = rounds.list_page(s, experiment.id, 2, first.next_cursor)
    assert second.next_cursor is None
    found = [*first.items, *second.items]
    assert [(row.round.number, row.round.state, row.participants, row.accepted, row.rejected) for row in found] == [
        (1, RoundState.COMMITTED, 3, 3, 0),
        (2, RoundState.COMMITTED, 3, 3, 0),
        (3, RoundState.OPEN, 3, 1, 1),
    ]
    assert found[1].metrics == {"bytes_up": 150, "bytes_down": 300, "train_loss": 2.5, "eval_loss": 2.5, "rouge_l": 20}
    assert found[2].metrics == {}


def test_one_round(database: Database, experiment: Experiment) -> None:
    with database.read() as s:
        assert rounds.summary(s, experiment.id, 2).metrics["rouge_l"] == 20
        with refused("round.not_found", "round = 4"):
            rounds.summary(s, experiment.id, 4)


def test_bytes_are_summed_over_rounds(database: Database, lab: Any, experiment: Experiment) -> None:
    other = lab.submit()
    with database.read() as s:
        sums = rounds.bytes_by_experiment(s, [experiment.id, other.id])
    assert sums == {experiment.id: TrafficTotals(up=350, down=900), other.id: TrafficTotals(up=0, down=0)}


def test_assignments_show_with_and_without_contribution(database: Database, experiment: Experiment) -> None:
    with database.read() as s:
        page = contributions.list_page(s, experiment.id, 10, round=3)
    shown = [(row.assignment.participant, row.assignment.state, row.contribution is not None) for row in page.items]
    assert shown == [("client-0", "accepted", True), ("client-1", "rejected", False), ("client-2", "pending", False)]
    assert page.items[1].assignment.error is not None
    assert page.items[1].assignment.error["detail"] == "three bytes"


def test_contributions_page_through_all_rounds(database: Database, experiment: Experiment) -> None:
    listed = pages(database, lambda s, cursor: contributions.list_page(s, experiment.id, 2, cursor))
    found = [(row.assignment.round, row.assignment.participant) for items in listed for row in items]
    assert found == [(number, f"client-{i}") for number in (1, 2, 3) for i in range(3)]


def test_metrics_are_summarised(database: Database, lab: Any, experiment: Experiment) -> None:
    other = lab.submit()
    with database.read() as s:
        found = metrics.summary(s, [experiment.id, other.id])
    assert found[other.id] == {}
    assert found[experiment.id]["eval_loss"] == MetricSummary(first=3.0, last=2.5, best=2.0)
    assert found[experiment.id]["rouge_l"] == MetricSummary(first=10.0, last=20.0, best=30.0)
    assert found[experiment.id]["train_loss"] == MetricSummary(first=2.0, last=2.5, best=2.0)


def test_less_is_better_of_costs_and_labels_are_left_to_the_curves(database: Database, lab: Any) -> None:
    other = lab.submit()
    with database.begin() as s:
        for number, seconds in ((1, 9.0), (2, 4.0), (3, 5.0)):
            points = {"local_seconds": seconds, "sequences_per_second": 40 / seconds, "eval_loss/open qa": 1.0}
            metrics.add(s, other.id, number, points)
    with database.read() as s:
        found = metrics.summary(s, [other.id])[other.id]
        named = {curve.name for curve in metric_series.curves(s, other.id).series}
    assert found == {
        "local_seconds": MetricSummary(first=9.0, last=5.0, best=4.0),
        "sequences_per_second": MetricSummary(first=40 / 9, last=8.0, best=10.0),
    }
    assert "eval_loss/open qa" in named


def test_artifacts_belong_to_their_experiment(database: Database, lab: Any, experiment: Experiment) -> None:
    other = lab.submit()
    with database.read() as s:
        files = artifacts.of_experiment(s, experiment.id)
        assert [(row.round, row.kind, row.location) for row in files] == [
            (number, "checkpoint", f"round-{number}/model.safetensors") for number in (0, 1, 2)
        ]
        assert artifacts.get(s, experiment.id, files[1].id).round == 1
        with pytest.raises(FerretError) as caught:
            artifacts.get(s, other.id, files[1].id)
    assert caught.value.code == "artifact.not_found"


def test_the_ledger_is_read_in_order(database: Database, experiment: Experiment) -> None:
    with database.read() as s:
        assert [entry.round for entry in ledger.after(s, experiment.id, 0, 10)] == [1, 2]
        assert [entry.round for entry in ledger.after(s, experiment.id, 1, 10)] == [2]
        assert [entry.round for entry in ledger.after(s, experiment.id, 0, 1)] == [1]
        with pytest.raises(FerretError) as caught:
            ledger.get(s, experiment.id, 3)
    assert caught.value.code == "round.not_found"


def test_events_resume_behind_a_number(database: Database, experiment: Experiment) -> None:
    with database.read() as s:
        everything = events.after(s, experiment.id, 0, 1000)
        assert [event.seq for event in everything] == list(range(1, experiment.last_event_seq + 1))
        assert [event.seq for event in events.after(s, experiment.id, 5, 2)] == [6, 7]
        assert events.after(s, experiment.id, experiment.last_event_seq, 10) == []


def test_gauges_count_every_state(database: Database, experiment: Experiment) -> None:
    with database.read() as s:
        found = gauges.read(s)
    assert found.experiments == dict.fromkeys(found.experiments, 0) | {"running": 1}
    assert len(found.experiments) == 6
    assert found.rounds == {"opening": 0, "open": 1, "frozen": 0, "committed": 2, "abandoned": 0}
    assert found.assignments == {"pending": 1, "leased": 0, "accepted": 7, "rejected": 1, "expired": 0}
    assert found.leases == {"held": 0, "expired": 0}
    assert found.waiting == {"ferret.train": 1, "ferret.aggregate": 0}
    assert set(found.unsent.values()) == set(found.dead.values()) == set(found.workers.values()) == {0}
    assert found.rejected == {}
    assert set(found.round_seconds) == {experiment.id}
