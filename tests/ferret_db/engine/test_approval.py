"""A pending participant is nobody's quorum; approved it takes part, and refused it never does."""

from __future__ import annotations

from typing import Any

from ferret_core.protocol.states import ParticipantState
from ferret_db.database import Database
from ferret_db.engine import membership
from ferret_db.engine.wait_reason import mark, waiting
from ferret_db.repositories import audit, experiments, participants
from ferret_db.tables import Experiment, Participant
from tests.refusals import refused


def join(database: Database, experiment: Experiment, name: str, *, approval: bool = True) -> Participant:
    with database.begin() as s:
        _, code = participants.create_enrolment(s, experiment.id, 60, approval=approval)
        return participants.enrol(s, code, name)[0]


def approve(database: Database, experiment: Experiment, name: str) -> Participant:
    with database.begin() as s:
        return membership.approve(s, audit.ADMIN, experiment.id, name)


def refuse(database: Database, experiment: Experiment, name: str, reason: str | None = None) -> Participant:
    with database.begin() as s:
        return membership.refuse(s, audit.ADMIN, experiment.id, name, reason)


def taking_part(database: Database, experiment: Experiment) -> tuple[list[str], int]:
    with database.read() as s:
        names = [row.name for row in participants.of_experiment(s, experiment.id)]
        found = waiting(s, experiments.get(s, experiment.id), None)
        assert found is not None
        return names, found.done


def marked(database: Database, experiment: Experiment) -> str:
    with database.read() as s:
        return mark(experiments.get(s, experiment.id), None)


def test_who_is_pending_takes_part_once_approved(database: Database, lab: Any, sent: list[Any]) -> None:
    experiment = lab.start(participants={"edge": 2})
    join(database, experiment, "site-a", approval=False)
    assert join(database, experiment, "site-b").state == ParticipantState.PENDING
    assert taking_part(database, experiment) == (["site-a"], 1)
    with database.read() as s:
        assert participants.count_pending(s, experiment.id) == 1
    before = marked(database, experiment)
    sent.clear()
    assert approve(database, experiment, "site-b").state == ParticipantState.ACTIVE
    assert taking_part(database, experiment)[0] == ["site-a", "site-b"]
    assert marked(database, experiment) != before
    assert sent == [("ferret.coordinate", experiment.id)]
    assert lab.events(experiment.id)[-1] == "participant.approved"
    after = marked(database, experiment)
    approve(database, experiment, "site-b")
    assert marked(database, experiment) == after, "twice is once"


def test_an_experiment_may_ask_for_the_approval_of_all(database: Database, lab: Any) -> None:
    experiment = lab.start(participants={"edge": 1, "approval": True})
    assert join(database, experiment, "site-a", approval=False).state == ParticipantState.PENDING


def test_a_refusal_is_final_and_keeps_the_first_reason(database: Database, lab: Any) -> None:
    experiment = lab.start(participants={"edge": 2})
    site = join(database, experiment, "site-a")
    before = marked(database, experiment)
    first = refuse(database, experiment, "site-a", "no contract")
    again = refuse(database, experiment, "site-a", "another")
    assert (again.state, again.revocation_reason, again.revoked_at) == (
        ParticipantState.REFUSED,
        "no contract",
        first.revoked_at,
    )
    assert marked(database, experiment) != before
    assert taking_part(database, experiment) == ([], 0)
    with refused("participant.conflict", "is refused and waits for no approval"):
        approve(database, experiment, "site-a")
    with database.read() as s:
        entries = audit.list_page(s, audit.AuditFilter(subject=site.id), 10).items
    assert [(entry.actor, entry.action) for entry in entries] == [("admin", "participant.refused")]
    assert entries[0].detail == {"experiment": experiment.id, "name": "site-a", "reason": "no contract"}


def test_who_takes_part_is_not_refused_any_more(database: Database, lab: Any) -> None:
    experiment = lab.start(participants={"edge": 2})
    join(database, experiment, "site-a")
    approve(database, experiment, "site-a")
    with refused("participant.conflict", "ferret participant revoke removes"):
        refuse(database, experiment, "site-a")
    with database.begin() as s:
        assert membership.revoke(s, audit.ADMIN, experiment.id, "site-a").state == ParticipantState.REVOKED
    with refused("participant.conflict", "is revoked"):
        approve(database, experiment, "site-a")
