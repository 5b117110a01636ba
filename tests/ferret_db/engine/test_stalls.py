"""Who is missing when nothing moves; what merely takes its time is no stall."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.signatures import new_key, public_key
from ferret_core.protocol.states import ParticipantKind
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_core.secure.prekeys import PrekeySecret
from ferret_db.database import Database
from ferret_db.engine import assignments, lifecycle, rounds
from ferret_db.engine.stalls import Stall, stall
from ferret_db.repositories import experiments, participants, secure_sums, service_clock
from ferret_db.tables import Assignment, Experiment, Participant, Round, ServiceClock, TaskRun, Worker

MASKED = {
    "secure": {"aggregation": "masked"},
    "algorithm": {"name": "ferret", "seeds": "shared", "allocation": "fixed", "K": 8},
}


@pytest.fixture
def crew(database: Database) -> None:
    """A worker of each queue, seen just now."""
    with database.begin() as s:
        for pid, queue in enumerate(Queue):
            s.add(Worker(id=f"{queue}-host-{pid}", queue=queue, host="host", pid=pid, device="cpu"))


def stalled(database: Database, experiment: Experiment) -> Stall | None:
    with database.read() as s:
        return stall(s, experiments.get(s, experiment.id))


def code(database: Database, experiment: Experiment) -> str | None:
    found = stalled(database, experiment)
    return found.code if found else None


def silence(lab: Any, queue: Queue, seconds: float = 20) -> None:
    lab.age(Worker, "seen_at", seconds, Worker.queue == queue)


@pytest.mark.usefixtures("crew")
def test_what_somebody_works_on_is_not_stalled(database: Database, lab: Any) -> None:
    queued, running, open_ = lab.submit(), lab.start(), lab.start()
    lab.open(open_)
    lab.age(Experiment, "created_at", 1000)
    lab.age(Round, "opened_at", 1000)
    assert [code(database, experiment) for experiment in (queued, running, open_)] == [None] * 3


@pytest.mark.parametrize("state", ["queued", "running"])
@pytest.mark.usefixtures("crew")
def test_a_missing_aggregation_worker(database: Database, lab: Any, state: str) -> None:
    experiment = lab.submit() if state == "queued" else lab.start()
    lab.age(Experiment, "created_at", 1000)
    silence(lab, Queue.AGGREGATE, 14)
    assert stalled(database, experiment) is None
    silence(lab, Queue.AGGREGATE, 16)
    found = stalled(database, experiment)
    assert found is not None
    assert found.code == "aggregation_worker.missing"
    assert "ferret worker aggregate" in found.detail
    with database.read() as s:
        assert 15 < (database.now(s) - found.since).total_seconds() < 300


def test_workers_have_a_moment_to_start(database: Database, lab: Any) -> None:
    experiment = lab.submit()
    assert stalled(database, experiment) is None
    lab.age(Experiment, "created_at", 16)
    assert code(database, experiment) == "aggregation_worker.missing"


@pytest.mark.usefixtures("crew")
def test_a_missing_training_worker(database: Database, lab: Any) -> None:
    experiment = lab.start()
    rows = lab.assignments(lab.open(experiment))
    silence(lab, Queue.TRAIN)
    assert stalled(database, experiment) is None  # it may be starting
    lab.age(Round, "opened_at", 20)
    assert code(database, experiment) == "training_worker.missing"
    for row in rows[1:]:
        lab.lease(row)
    lab.deliver(rows[0])
    assert stalled(database, experiment) is None  # somebody trains
    lab.age(Assignment, "lease_until", 1, Assignment.state == "leased")
    assert code(database, experiment) == "training_worker.missing"


@pytest.mark.usefixtures("crew")
def test_a_round_of_real_participants_needs_no_training_worker(database: Database, lab: Any) -> None:
    experiment = lab.start(participants={"edge": 1})
    with database.begin() as s:
        own, _ = participants.enrol(s, participants.create_enrolment(s, experiment.id, 60)[1], "clinic-a")
        task = (lab.task(experiment, 1, "clinic-a"), ParticipantKind.EDGE, own.id)
        rounds.open_round(s, experiment.id, 1, [task], 60, 0)
    silence(lab, Queue.TRAIN)
    lab.age(Round, "opened_at", 20)
    assert stalled(database, experiment) is None


@pytest.mark.usefixtures("crew")
def test_real_participants_that_have_not_joined(database: Database, lab: Any) -> None:
    experiment = lab.start(participants={"simulated": 2, "edge": 2})
    lab.age(Experiment, "started_at", 500)
    for joined, name in enumerate(("clinic-a", "clinic-b")):
        found = stalled(database, experiment)
        assert found is not None
        assert found.code == "participants.missing"
        assert f"{joined} of 2 real participants have joined" in found.detail
        assert f"ferret code create {experiment.id}" in found.detail
        with database.begin() as s:
            participants.enrol(s, participants.create_enrolment(s, experiment.id, 60)[1], name)
        lab.age(Participant, "created_at", 100)
    assert stalled(database, experiment) is None


@pytest.mark.usefixtures("crew")
def test_participants_that_wait_to_be_approved(database: Database, lab: Any) -> None:
    experiment = lab.start(participants={"edge": 1})
    with database.begin() as s:
        _, secret = participants.create_enrolment(s, experiment.id, 60, approval=True)
        participants.enrol(s, secret, "clinic-a")
    found = stalled(database, experiment)
    assert found is not None
    assert found.code == "participants.missing"
    assert "0 of 1 real participants have joined" in found.detail
    assert f"1 waits to be approved: ferret participant list {experiment.id}" in found.detail


@pytest.mark.usefixtures("crew")
def test_a_secure_sum_whose_sites_have_no_keys_or_are_too_few(database: Database, lab: Any) -> None:
    experiment = lab.start(**MASKED, participants={"simulated": 0, "edge": 3})
    sites = list[Participant]()
    with database.begin() as s:
        for name in ("site-1", "site-2", "site-3"):
            key = new_key()
            code = participants.create_enrolment(s, experiment.id, 60)[1]
            site, _ = participants.enrol(s, code, name, public_key(key))
            sites.append(site)
            if name != "site-3":
                secure_sums.restock(s, site, [PrekeySecret.new().prekey(experiment.id, name, key)])
    assert stalled(database, experiment) is None  # it may be sending them
    lab.age(Experiment, "started_at", 500)
    lab.age(Participant, "created_at", 500)
    found = stalled(database, experiment)
    assert found is not None
    assert (found.code, "no one-time keys are left of site-3" in found.detail) == ("participants.missing", True)

    with database.begin() as s:
        secure_sums.restock(s, sites[2], [PrekeySecret.new().prekey(experiment.id, "site-3", key)])
    assert stalled(database, experiment) is None
    round_ = lab.open(experiment)
    with database.begin() as s:
        lifecycle.abandon_round(s, round_, None)
        participants.revoke(s, sites[0], None)
    found = stalled(database, experiment)
    assert found is not None
    assert "2 of 3 real participants have joined; the others were revoked, and a round needs 3" in found.detail


@pytest.mark.usefixtures("crew")
def test_a_full_disk(database: Database, lab: Any) -> None:
    round_ = lab.freeze(lab.start())
    experiment = lab.get(round_).experiment_id
    error = {"code": "storage.full", "detail": "make room"}
    with database.begin() as s:
        s.add(TaskRun(task=TaskName.AGGREGATE, argument=round_.id, experiment_id=experiment, error=error))
        found = stall(s, experiments.get(s, experiment))
    assert found is not None
    assert found[:2] == ("storage.full", "make room")


@pytest.mark.usefixtures("crew")
def test_a_silent_broker(database: Database, lab: Any) -> None:
    queued = lab.submit()
    with database.begin() as s:
        service_clock.begin(s, "worker-1")
        service_clock.broker_answers(s, yes=False)
    assert stalled(database, queued) is None  # it may be starting
    lab.age(ServiceClock, "broker_silent_since", 6)
    found = stalled(database, queued)
    assert found is not None
    assert found.code == "broker.missing"
    assert "start it again" in found.detail
    with database.begin() as s:
        service_clock.broker_answers(s, yes=False)  # it still is: since then
        service_clock.broker_answers(s, yes=True)
    assert stalled(database, queued) is None


@pytest.mark.parametrize("how", ["pause", "cancel", "complete"])
def test_what_is_paused_or_over_waits_for_nobody(database: Database, lab: Any, how: str) -> None:
    experiment = lab.start()
    lab.open(experiment)
    lab.age(Experiment, "created_at", 1000)
    assert code(database, experiment) == "aggregation_worker.missing"
    with database.begin() as s:
        getattr(lifecycle, how)(s, experiment.id)
    assert stalled(database, experiment) is None


def test_a_lease_keeps_nobody_waiting(database: Database, lab: Any) -> None:
    experiment = lab.start()
    (row,) = lab.assignments(lab.open(experiment, participants=1))
    with database.begin() as s:
        assignments.lease(s, row.id, 60)
    lab.age(Round, "opened_at", 1000)
    assert stalled(database, experiment) is None
