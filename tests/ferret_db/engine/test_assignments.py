"""Leases, fences and what is accepted under them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, ParticipantKind
from ferret_core.rounds.cost import LocalCost
from ferret_db.database import Database
from ferret_db.engine import assignments, lifecycle, rounds
from ferret_db.engine.acceptance import ContributionOffer, accept
from ferret_db.repositories import assignments as assignment_rows
from ferret_db.repositories import events, participants, rejections
from ferret_db.tables import Assignment
from tests.refusals import refused


def lease(database: Database, assignment: Assignment, seconds: float = 60) -> Assignment | None:
    with database.begin() as s:
        return assignments.lease(s, assignment.id, seconds)


@pytest.fixture
def assignment(lab: Any) -> Assignment:
    """The first of three of an open round."""
    return lab.assignments(lab.open(lab.start()))[0]


def test_a_lease_is_ours_for_its_seconds(database: Database, lab: Any, assignment: Assignment) -> None:
    leased = lab.lease(assignment, 60)
    assert (leased.state, leased.fence, leased.attempt) == (AssignmentState.LEASED, 1, 1)
    with database.read() as s:
        left = leased.lease_until - database.now(s)
    assert timedelta(seconds=50) < left <= timedelta(seconds=60)
    assert lease(database, assignment) is None


def test_a_lease_that_ran_out_is_taken_over(database: Database, lab: Any, assignment: Assignment) -> None:
    old = lab.lease(assignment, seconds=-1)
    new = lab.lease(assignment)
    assert (new.fence, new.attempt) == (old.fence + 1, 2)
    for late in (lambda: lab.accept(old), lambda: lab.reject(old)):
        with refused("lease.lost", "fence 1 does not hold"):
            late()
    with refused("lease.lost"), database.begin() as s:
        assignments.heartbeat(s, old.id, old.fence, 60)
    assert lab.accept(new).participant == assignment.participant


@pytest.mark.about_database
def test_threads_take_over_a_lost_lease_once(database: Database, lab: Any, assignment: Assignment) -> None:
    lab.lease(assignment, seconds=-1)
    taken = [leased for leased in lab.race(lambda _: lease(database, assignment)) if leased is not None]
    assert [leased.fence for leased in taken] == [2]


def test_a_lease_that_ran_out_is_lost_though_nobody_took_it_over(lab: Any, assignment: Assignment) -> None:
    late = lab.lease(assignment, seconds=-1)
    for act in (lambda: lab.accept(late), lambda: lab.reject(late)):
        with refused("lease.lost", f"the lease on {late.id} ran out at"):
            act()
    assert lab.get(assignment).state == AssignmentState.LEASED


def test_work_that_is_given_back_waits_for_another_at_once(
    database: Database, lab: Any, assignment: Assignment, sent: list[Any]
) -> None:
    old = lab.lease(assignment)
    sent.clear()
    with database.begin() as s:
        assignments.give_back(s, old.id, old.fence)
    assert sent == [("ferret.train", assignment.id)]
    new = lab.lease(assignment)
    assert (new.fence, new.attempt) == (2, 2)
    with refused("lease.lost"), database.begin() as s:
        assignments.give_back(s, old.id, old.fence)
    assert lab.get(assignment).state == AssignmentState.LEASED


@pytest.mark.about_database
def test_heartbeats_beside_it_keep_no_work_from_being_given_back(database: Database, lab: Any) -> None:
    """A heartbeat moves the row's version; only what was taken away for good may be refused."""

    def act(held: Assignment, thread: int) -> str:
        try:
            with database.begin() as s:
                if thread == 0:
                    assignments.give_back(s, held.id, held.fence)
                else:
                    assignments.heartbeat(s, held.id, held.fence, 60)
        except FerretError as error:
            return error.code
        return "done"

    for row in lab.assignments(lab.open(lab.start(), participants=6)):
        gave_back, *beats = lab.race(partial(act, lab.lease(row)), threads=4)
        assert gave_back == "done"
        assert set(beats) <= {"done", "lease.lost"}
        assert lab.get(row).state == AssignmentState.PENDING


def test_heartbeats_prolong_the_lease(database: Database, lab: Any, assignment: Assignment) -> None:
    leased = lab.lease(assignment, 1)
    with database.begin() as s:
        until = assignments.heartbeat(s, leased.id, leased.fence, 600)
    assert until - leased.lease_until > timedelta(seconds=500)
    assert lab.get(assignment).lease_until == until


def test_an_unknown_assignment_is_not_found(database: Database) -> None:
    with refused("assignment.not_found", "asg_none"), database.begin() as s:
        assignments.heartbeat(s, "asg_none", 1, 60)


def test_accepting_stores_the_contribution(database: Database, lab: Any, assignment: Assignment) -> None:
    stored = lab.accept(lab.lease(assignment), digest="c1" * 32)
    assert (stored.digest, stored.size, stored.examples, stored.bytes_down) == ("c1" * 32, 50, 7, 100)
    assert stored.metrics == {"train_loss": 2.5}
    kept = lab.get(assignment)
    assert (kept.state, kept.seconds, kept.lease_until) == (AssignmentState.ACCEPTED, 1.5, None)
    with database.read() as s:
        last = events.after(s, assignment.experiment_id, 0, 100)[-1]
    assert (last.type, last.round) == ("contribution.accepted", 1)
    assert last.data == {"participant": "client-0", "kind": "simulated", "digest": "c1" * 32, "size": 50}


def test_the_same_key_with_another_contribution_is_a_conflict(database: Database, lab: Any) -> None:
    experiment = lab.start(rounds=2)

    def deliver(leased: Assignment, digest: str, key: str | None) -> Any:
        with database.begin() as s:
            sealed = lab.sealed(leased, digest)
            return accept(s, ContributionOffer(leased.id, leased.fence, sealed, LocalCost(1.0), idempotency_key=key))

    round_ = lab.open(experiment, participants=1)
    leased = lab.lease(lab.assignments(round_)[0])
    first = deliver(leased, "c1", "key")
    assert first.idempotency_key == "key"
    assert deliver(leased, "c1", "key").id == first.id
    assert deliver(leased, "c1", None).id == first.id
    lab.commit(round_)
    following = lab.lease(lab.assignments(lab.open(lab.get(experiment), participants=1, number=2))[0])
    for late in (lambda: deliver(leased, "c2", "key"), lambda: deliver(following, "c3", "key")):
        with refused("idempotency.conflict", "was used with c1 for round 1"):
            late()
    with refused("contribution.duplicate"):
        deliver(leased, "c2", "another")
    assert deliver(following, "c3", "another").round == 2


@pytest.mark.about_database
def test_threads_accept_once(lab: Any, assignment: Assignment) -> None:
    leased = lab.lease(assignment)
    assert len({stored.id for stored in lab.race(lambda _: lab.accept(leased))}) == 1


def test_a_contribution_from_another_model_is_refused(lab: Any, assignment: Assignment) -> None:
    leased = lab.lease(assignment)
    with refused("contribution.wrong_base", "base_digest"):
        lab.accept(leased, base_digest="ff" * 32)
    assert lab.get(assignment).state == AssignmentState.LEASED  # it may still deliver the right one


def test_nothing_is_accepted_without_a_lease(lab: Any, assignment: Assignment) -> None:
    with refused("lease.lost"):
        lab.accept(assignment)


def test_a_closed_round_names_the_current_one(database: Database, lab: Any) -> None:
    experiment = lab.start(rounds=2)
    round_ = lab.open(experiment, participants=2, needed=1)
    prompt, late = [lab.lease(row) for row in lab.assignments(round_)]
    lab.accept(prompt)
    lab.commit(round_)
    with refused("round.closed", "is committed; the current round is 2") as caught:
        lab.accept(late)
    assert caught.value.members == {"current_round": 2}
    with database.begin() as s:
        lifecycle.cancel(s, experiment.id)
    with refused("round.closed", "there will be no more rounds") as caught:
        lab.accept(late)
    assert caught.value.members == {"current_round": None}


def test_refused_uploads_are_counted_by_reason_and_move_nothing(
    database: Database, lab: Any, assignment: Assignment, sent: list[Any]
) -> None:
    def refuse(code: str, detail: str) -> None:
        with database.begin() as s:
            assignments.refuse(s, assignment.id, FerretError(code, detail))

    leased, happened = lab.lease(assignment), lab.events(assignment.experiment_id)
    sent.clear()
    refuse("contribution.wrong_base", "resync")
    refuse("contribution.non_finite", "a NaN")
    refuse("contribution.wrong_base", "resync, please")
    with database.read() as s:
        noted = rejections.list_page(s, assignment.experiment_id, 10).items
    assert [(row.code, row.count, row.detail) for row in noted] == [
        ("contribution.non_finite", 1, "a NaN"),
        ("contribution.wrong_base", 2, "resync, please"),
    ]
    assert {(row.participant, row.round, row.assignment_id) for row in noted} == {("client-0", 1, assignment.id)}
    assert lab.get(assignment).version == leased.version
    assert (lab.events(assignment.experiment_id), sent) == (happened, [])
    assert lab.accept(leased).participant == "client-0"


@pytest.mark.about_database
def test_threads_count_every_refusal(database: Database, lab: Any, assignment: Assignment) -> None:
    def refuse(thread: int) -> None:
        with database.begin() as s:
            assignments.refuse(s, assignment.id, FerretError("contribution.malformed", f"{thread}"))

    lab.race(refuse)
    with database.read() as s:
        assert [row.count for row in rejections.list_page(s, assignment.experiment_id, 10).items] == [8]


def test_rejecting_keeps_the_reason(database: Database, lab: Any, assignment: Assignment) -> None:
    leased = lab.lease(assignment)
    lab.reject(leased)
    lab.reject(leased)
    kept = lab.get(assignment)
    assert (kept.state, kept.error["code"]) == (AssignmentState.REJECTED, "training.non_finite")
    with database.read() as s:
        types = [event.type for event in events.after(s, assignment.experiment_id, 0, 100)]
    assert types.count("contribution.rejected") == 1
    assert lease(database, assignment) is None


def test_a_real_participant_leases_its_own_assignments_only(database: Database, lab: Any) -> None:
    experiment = lab.start(participants={"edge": 2})
    with database.begin() as s:
        ours, theirs = (
            participants.enrol(s, participants.create_enrolment(s, experiment.id, 60)[1], name)[0]
            for name in ("clinic-a", "clinic-b")
        )
    with database.begin() as s:
        tasks = [(lab.task(experiment, 1, row.name), ParticipantKind.EDGE, row.id) for row in (ours, theirs)]
        rounds.open_round(s, experiment.id, 1, tasks, 60, 0)

    def lease_next(s: Session) -> Assignment | None:
        waiting = assignment_rows.next_for(s, [ours.id]).get(ours.id)
        return None if waiting is None else assignments.lease(s, waiting, 60)

    with database.begin() as s:
        leased = lease_next(s)
        assert leased is not None
        assert (leased.participant, leased.participant_id) == ("clinic-a", ours.id)
        assert lease_next(s) is None
    lab.age(Assignment, "lease_until", 1, Assignment.id == leased.id)
    with database.begin() as s:
        again = lease_next(s)
    assert again is not None
    assert (again.id, again.fence) == (leased.id, 2)
