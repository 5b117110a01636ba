"""After its end an experiment is extended, cloned, archived or deleted."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, select

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.resources.alerts import AlertEvent, AlertKind
from ferret_core.protocol.states import ExperimentState, SumStage
from ferret_core.protocol.task_names import TaskName
from ferret_db.database import Database
from ferret_db.engine import alerts as engine_alerts
from ferret_db.engine import assignments, lifecycle
from ferret_db.engine import rounds as engine
from ferret_db.repositories import alerts, experiment_list, experiments, outbox, participants
from ferret_db.repositories.experiment_list import ExperimentFilter
from ferret_db.repositories.experiments import spec_of
from ferret_db.tables import Base, Experiment, NoisedSum, Participant, Prekey, SecureMessage, SecureSum, TaskRun
from tests.refusals import refused


def extend(database: Database, experiment: Experiment, more: int) -> Experiment:
    with database.begin() as s:
        return lifecycle.extend(s, experiment.id, more)


def listed(database: Database, **wanted: Any) -> list[str]:
    with database.read() as s:
        return [row.id for row in experiment_list.list_page(s, ExperimentFilter(**wanted), 10).items]


def end(database: Database, experiment: Experiment, how: str = "cancel") -> Experiment:
    with database.begin() as s:
        return getattr(lifecycle, how)(s, experiment.id)


@pytest.fixture
def completed(database: Database, lab: Any) -> Experiment:
    """One of one round, with everything that belongs to an experiment."""
    experiment = lab.start(rounds=1, participants={"simulated": 3, "edge": 1})
    with database.begin() as s:
        code = participants.create_enrolment(s, experiment.id, 60)[1]
        participants.create_enrolment(s, experiment.id, 60)
        participants.enrol(s, code, "clinic-a")
        s.add(TaskRun(task=TaskName.EVALUATE, argument=experiment.id, experiment_id=experiment.id))
    round_ = lab.open(experiment)
    own = {"experiment_id": experiment.id}
    with database.begin() as s:
        site = participants.named(s, experiment.id, "clinic-a")
        s.add(Prekey(participant_id=site.id, mask="a1" * 32, share="a2" * 32, signature="a3" * 64, **own))
        s.add(SecureSum(round_id=round_.id, number=1, roster={}, **own))
        s.add(NoisedSum(round_id=round_.id, body=b"noised", **own))
        s.add(SecureMessage(round_id=round_.id, participant=site.name, kind=SumStage.DEAL, body=b"x", **own))
    for assignment in lab.assignments(round_):
        with database.begin() as s:
            assignments.refuse(s, assignment.id, FerretError("lease.lost", "no"))
        lab.deliver(assignment)
    lab.commit(round_)
    with database.begin() as s:
        engine.record_evaluation(s, experiment.id, 1, {"eval_loss": 2.0})
    return end(database, experiment, "complete")


def test_a_completed_experiment_runs_again_with_more_rounds(
    database: Database, lab: Any, completed: Experiment, sent: list[Any]
) -> None:
    sent.clear()
    extended = extend(database, completed, 2)
    assert (extended.state, extended.rounds, extended.round) == (ExperimentState.RUNNING, 3, 1)
    assert extended.finished_at is None
    assert spec_of(lab.get(completed)).rounds == 3
    assert sent == [("ferret.coordinate", completed.id)]
    assert lab.events(completed.id)[-1] == "experiment.extended"
    assert lab.open(extended, number=2).base_digest == "dd" * 32


@pytest.mark.parametrize("state", ["running", "paused"])
def test_one_under_way_goes_on_for_longer(database: Database, lab: Any, state: str) -> None:
    experiment = lab.start()
    round_ = lab.open(experiment)
    if state == "paused":
        end(database, experiment, "pause")
    extended = extend(database, experiment, 1)
    assert (extended.state, extended.rounds, lab.get(round_).state) == (state, 3, "open")


@pytest.mark.parametrize("ended", ["cancel", None])
def test_others_cannot_be_extended(database: Database, lab: Any, ended: str | None) -> None:
    experiment = lab.submit()
    if ended:
        end(database, experiment, ended)
    with refused("experiment.conflict", "clone it with more rounds"):
        extend(database, experiment, 1)


@pytest.mark.parametrize(
    ("changes", "more", "named"),
    [
        ({"server": {"schedule": "cosine"}}, 1, "server.schedule = 'cosine'"),
        ({}, 0, "rounds = 0"),
        ({}, MAX_ROUNDS, f"takes 1 to {MAX_ROUNDS - 2} more"),
    ],
)
def test_rounds_that_would_change_the_earlier_ones_or_are_no_number_are_refused(
    database: Database, lab: Any, changes: dict[str, Any], more: int, named: str
) -> None:
    experiment = lab.start(**changes)
    with refused("extension.refused", named):
        extend(database, experiment, more)
    assert lab.get(experiment).rounds == 2


@pytest.mark.about_database
def test_threads_that_extend_all_count(database: Database, lab: Any) -> None:
    experiment = lab.start()
    lab.race(lambda _: extend(database, experiment, 1))
    assert (lab.get(experiment).rounds, spec_of(lab.get(experiment)).rounds) == (10, 10)


def test_a_clone_says_where_it_comes_from(database: Database, lab: Any) -> None:
    first = lab.submit()
    with database.begin() as s:
        clone, created = lifecycle.submit(s, lab.spec(seed=1), cloned_from=first.id)
    assert (created, clone.cloned_from, clone.state) == (True, first.id, ExperimentState.QUEUED)
    assert lab.get(first).cloned_from is None


def test_an_archived_experiment_is_listed_only_where_asked_for(database: Database, lab: Any) -> None:
    kept, away = end(database, lab.submit()), end(database, lab.submit())
    archived = end(database, away, "archive")
    assert end(database, away, "archive").archived_at == archived.archived_at is not None
    assert (listed(database), listed(database, archived=True)) == ([kept.id], [away.id])
    assert end(database, away, "unarchive").archived_at is None
    assert set(listed(database)) == {kept.id, away.id}


def test_an_extended_experiment_is_listed_again(database: Database, completed: Experiment) -> None:
    end(database, completed, "archive")
    extend(database, completed, 1)
    assert listed(database) == [completed.id]


@pytest.mark.parametrize("how", ["archive", "unarchive", "delete"])
def test_only_what_is_over_can_be_put_away(database: Database, lab: Any, how: str) -> None:
    experiment = lab.start()
    with refused("experiment.conflict", "cancel it first"):
        end(database, experiment, how)


def rows(database: Database) -> dict[str, int]:
    tables = [table for table in Base.metadata.sorted_tables if table.name not in {"users", "projects"}]  # have a first
    with database.read() as s:
        counts = {table.name: s.scalars(select(func.count()).select_from(table)).one() for table in tables}
    return {name: count for name, count in counts.items() if count}


@pytest.mark.about_database
def test_deleting_leaves_no_row_and_touches_no_other_experiment(
    database: Database, lab: Any, completed: Experiment
) -> None:
    with database.begin() as s:
        experiments.replace_tags(s, completed.id, ["hearts"])
        alert = alerts.add(s, "default", AlertKind.EMAIL, "ada@example.org", [AlertEvent.FAILED], None, completed.id)
        engine_alerts.test(s, alert)
    everywhere = rows(database)
    # Those of no experiment, and the calls, which ended with it.
    apart = {"workers", "service", "sessions", "outbox", "audit", "audit_head", "users", "user_tokens", "installation"}
    apart |= {"projects", "memberships"}
    assert everywhere.keys() == {table.name for table in Base.metadata.sorted_tables} - apart
    end(database, completed, "delete")
    assert rows(database) == {}
    with refused("experiment.not_found"):
        end(database, completed, "delete")


def test_deleting_one_leaves_the_others(database: Database, lab: Any) -> None:
    other = lab.start()
    lab.commit(lab.freeze(other))
    with database.begin() as s:
        outbox.add(s, TaskName.COORDINATE, other.id)
        s.add(Participant(experiment_id=other.id, name="clinic-b", display_name="clinic-b", token_hash="t"))
    before = rows(database)
    clone = lab.start()
    lab.open(clone)
    end(database, clone)
    end(database, clone, "delete")
    assert rows(database) == before
