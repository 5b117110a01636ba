"""A revoked participant is not waited for; what was accepted from it stays."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.states import AssignmentState, ParticipantKind, RoundState
from ferret_db.database import Database
from ferret_db.engine import assignments, membership, rounds, stalls
from ferret_db.engine.wait_reason import required
from ferret_db.repositories import audit, contributions, experiments, participants
from ferret_db.tables import Experiment, Participant, Round
from tests.refusals import refused


@pytest.fixture
def experiment(database: Database, lab: Any) -> Experiment:
    return lab.start(participants={"edge": 2})


@pytest.fixture
def sites(database: Database, experiment: Experiment) -> list[Participant]:
    return [join(database, experiment, name) for name in ("site-a", "site-b")]


def join(database: Database, experiment: Experiment, name: str) -> Participant:
    with database.begin() as s:
        _, code = participants.create_enrolment(s, experiment.id, 60)
        return participants.enrol(s, code, name)[0]


def open_round(database: Database, lab: Any, experiment: Experiment, sites: list[Participant]) -> Round:
    tasks = [(lab.task(experiment, 1, site.name), ParticipantKind.EDGE, site.id) for site in sites]
    with database.begin() as s:
        return rounds.open_round(s, experiment.id, 1, tasks, 60, bytes_down_each=100)


def revoke(database: Database, experiment: Experiment, name: str, reason: str | None = None) -> Participant:
    with database.begin() as s:
        return membership.revoke(s, audit.ADMIN, experiment.id, name, reason)


@pytest.mark.parametrize("leased", [False, True])
def test_what_it_had_to_do_is_given_up_and_the_round_goes_on(
    database: Database, lab: Any, experiment: Experiment, sites: list[Participant], leased: bool
) -> None:
    round_ = open_round(database, lab, experiment, sites)
    first, second = lab.assignments(round_)
    lab.deliver(first)
    held = lab.lease(second) if leased else second
    revoke(database, experiment, "site-b")
    assert lab.get(round_).state == RoundState.FROZEN
    assert lab.get(second).state == AssignmentState.REJECTED
    assert lab.get(second).error["code"] == "participant.revoked"
    assert lab.events(experiment.id)[-3:] == ["participant.revoked", "contribution.rejected", "round.frozen"]
    with refused("lease.lost"), database.begin() as s:
        assignments.heartbeat(s, second.id, held.fence, 60)


def test_what_was_accepted_stays(
    database: Database, lab: Any, experiment: Experiment, sites: list[Participant]
) -> None:
    round_ = open_round(database, lab, experiment, sites)
    for assignment in lab.assignments(round_)[:1]:
        lab.deliver(assignment)
    revoke(database, experiment, "site-a")
    assert lab.get(round_).state == RoundState.OPEN
    with database.read() as s:
        assert [row.participant for row in contributions.of_round(s, round_.id)] == ["site-a"]


def test_a_round_that_is_being_prepared_opens_without_it(
    database: Database, lab: Any, experiment: Experiment, sites: list[Participant]
) -> None:
    tasks = [(lab.task(experiment, 1, site.name), ParticipantKind.EDGE, site.id) for site in sites]
    with database.begin() as s:
        round_ = rounds.announce_round(s, experiment.id, 1, ["site-a", "site-b"], 60, 100)
    revoke(database, experiment, "site-b")
    with database.begin() as s:
        assert rounds.fill_round(s, round_, rounds.assignment_rows(round_, tasks))
    with database.begin() as s:
        rounds.open_announced(s, round_.id, 2, 60)
    assert [row.state for row in lab.assignments(round_)] == [AssignmentState.PENDING, AssignmentState.REJECTED]


def test_round_one_waits_for_a_replacement_and_later_ones_do_not(
    database: Database, lab: Any, experiment: Experiment, sites: list[Participant]
) -> None:
    def missing() -> tuple[int, int]:
        with database.read() as s:
            return required(s, experiments.get(s, experiment.id)), participants.count(s, experiment.id)

    revoke(database, experiment, "site-b")
    assert missing() == (2, 1)
    sites = [sites[0], join(database, experiment, "site-c")]
    round_ = open_round(database, lab, experiment, sites)
    revoke(database, experiment, "site-c")
    assert missing() == (1, 1)
    assert lab.get(round_).state == RoundState.OPEN


def test_without_anybody_left_the_experiment_stands_still_and_says_so(
    database: Database, lab: Any, experiment: Experiment, sites: list[Participant]
) -> None:
    open_round(database, lab, experiment, sites)
    for site in sites:
        revoke(database, experiment, site.name)
    with database.read() as s:
        stall = stalls.stall(s, experiments.get(s, experiment.id))
    assert stall is not None
    assert stall.code == "participants.missing"
    assert "the others were revoked" in stall.detail


def test_twice_is_once_and_the_first_reason_counts(
    database: Database, experiment: Experiment, sites: list[Participant]
) -> None:
    first = revoke(database, experiment, "site-a", "left the study")
    again = revoke(database, experiment, "site-a", "another")
    assert (again.revoked_at, again.revocation_reason) == (first.revoked_at, "left the study")
    with database.read() as s:
        (entry,) = audit.list_page(s, audit.AuditFilter(action="participant.revoked"), 10).items
    assert (entry.actor, entry.subject) == ("admin", sites[0].id)
    assert entry.detail == {"experiment": experiment.id, "name": "site-a", "reason": "left the study"}


def test_nobody_else_is_found(database: Database, experiment: Experiment, sites: list[Participant]) -> None:
    with refused("participant.not_found", "site-x"):
        revoke(database, experiment, "site-x")


def test_its_name_stays_taken(database: Database, experiment: Experiment, sites: list[Participant]) -> None:
    revoke(database, experiment, "site-a")
    with refused("request.invalid", "is taken"):
        join(database, experiment, "site-a")
