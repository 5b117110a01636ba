"""Enrolment: a code works once and in time; tokens and codes are kept only as hashes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import text

from ferret_core.protocol.errors import FerretError
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.repositories import events, participants
from ferret_db.tables import Participant
from tests.refusals import refused


def code_for(database: Database, experiment_id: str, seconds: float = 60) -> str:
    with database.begin() as s:
        return participants.create_enrolment(s, experiment_id, seconds)[1]


def enrol(database: Database, code: str, name: str) -> tuple[Participant, str]:
    with database.begin() as s:
        return participants.enrol(s, code, name)


def test_a_code_becomes_a_token(database: Database, lab: Any, sent: list[Any]) -> None:
    experiment = lab.submit()
    sent.clear()
    participant, token = enrol(database, code_for(database, experiment.id), "clinic-a")
    assert sent == [("ferret.coordinate", experiment.id)]
    with database.read() as s:
        found = participants.by_tokens(s, [token]).get(token)
        assert found is not None
        assert (found.id, found.name, found.experiment_id) == (participant.id, "clinic-a", experiment.id)
        assert participants.by_tokens(s, [token[:-1]]) == {}
        assert [row.name for row in participants.of_experiment(s, experiment.id)] == ["clinic-a"]
        last = events.after(s, experiment.id, 1, 10)
    assert [(event.type, event.data) for event in last] == [("participant.joined", {"participant": "clinic-a"})]


def test_secrets_are_long_and_not_kept(database: Database, lab: Any) -> None:
    experiment = lab.submit()
    code = code_for(database, experiment.id)
    _, token = enrol(database, code, "clinic-a")
    assert min(len(code), len(token)) >= 43  # 256 bits in base64
    with database.read() as s:
        kept = [*s.execute(text("SELECT * FROM participants")), *s.execute(text("SELECT * FROM enrolments"))]
    assert not any(secret in str(row) for row in kept for secret in (code, token))


@pytest.mark.about_database
def test_a_code_works_once(database: Database, lab: Any) -> None:
    code = code_for(database, lab.submit().id)

    def join(thread: int) -> str:
        try:
            enrol(database, code, f"clinic-{thread}")
        except FerretError as error:
            return error.code
        return "joined"

    assert sorted(lab.race(join)) == ["enrolment.used"] * 7 + ["joined"]


@pytest.mark.parametrize("seconds", [0, -5])
def test_an_expired_code_is_refused(database: Database, lab: Any, seconds: float) -> None:
    code = code_for(database, lab.submit().id, seconds)
    with refused("enrolment.invalid"):
        enrol(database, code, "clinic-a")


def test_an_unknown_code_is_refused(database: Database) -> None:
    with refused("enrolment.invalid"):
        enrol(database, "guess", "clinic-a")


def test_a_taken_name_is_refused_and_the_code_stays_good(database: Database, lab: Any) -> None:
    experiment = lab.submit()
    enrol(database, code_for(database, experiment.id), "clinic-a")
    code = code_for(database, experiment.id)
    with refused("request.invalid", "'clinic-a'"):
        enrol(database, code, "clinic-a")
    assert enrol(database, code, "clinic-b")[0].name == "clinic-b"


def test_names_that_lead_to_one_id_get_two(database: Database, lab: Any) -> None:
    experiment = lab.submit()
    first, second = (
        enrol(database, code_for(database, experiment.id), name)[0] for name in ("北京 Hospital", "上海 Hospital")
    )
    assert first.name == "hospital"
    assert re.fullmatch("hospital-[0-9a-f]{8}", second.name)
    with database.read() as s:
        found = participants.display_names(s, experiment.id, ["hospital", second.name, "client-001"])
    assert found == {"hospital": "北京 Hospital", second.name: "上海 Hospital"}
    with refused("request.invalid", "is taken"):
        enrol(database, code_for(database, experiment.id), "北京 Hospital")


def test_an_id_of_a_simulated_client_is_not_given(database: Database, lab: Any) -> None:
    participant, _ = enrol(database, code_for(database, lab.submit().id), "Client 001")
    assert re.fullmatch("client-001-[0-9a-f]{8}", participant.name)


def test_a_finished_experiment_takes_nobody(database: Database, lab: Any) -> None:
    experiment = lab.submit()
    code = code_for(database, experiment.id)
    with database.begin() as s:
        lifecycle.cancel(s, experiment.id)
    for join in (lambda: enrol(database, code, "late"), lambda: code_for(database, experiment.id)):
        with refused("experiment.conflict"):
            join()


@pytest.mark.about_database
def test_seen_notes_the_call(database: Database, lab: Any) -> None:
    participant, _ = enrol(database, code_for(database, lab.submit().id), "clinic-a")
    lab.age(Participant, "seen_at", 60)
    before = lab.get(participant).seen_at
    with database.begin() as s:
        participants.seen(s, [participant.id])
    assert (lab.get(participant).seen_at - before).total_seconds() >= 60


def test_a_name_of_a_simulated_client_is_taken(database: Database, lab: Any) -> None:
    code = code_for(database, lab.submit().id)
    with refused("request.invalid", "is taken"):
        enrol(database, code, "client-001")
    assert enrol(database, code, "clinic-a")[0].name == "clinic-a"
