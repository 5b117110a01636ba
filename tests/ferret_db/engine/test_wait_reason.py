"""What a participant is told that it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.states import WaitReason
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.engine.wait_reason import WaitStatus, mark, waiting
from ferret_db.repositories import experiments, participants, rounds
from ferret_db.tables import Experiment


def told(database: Database, experiment: Experiment) -> WaitStatus | None:
    with database.read() as s:
        found = experiments.get(s, experiment.id)
        return waiting(s, found, rounds.latest(s, found.id))


def test_it_waits_for_others_to_join(database: Database, lab: Any) -> None:
    experiment = lab.start(participants={"edge": 2})
    for number, expected in enumerate(
        [
            WaitStatus(WaitReason.PARTICIPANTS, 0, 0, 2),
            WaitStatus(WaitReason.PARTICIPANTS, 0, 1, 2),
            WaitStatus(WaitReason.ROUND, 1),
        ]
    ):
        assert told(database, experiment) == expected
        with database.begin() as s:
            _, code = participants.create_enrolment(s, experiment.id, 60)
            participants.enrol(s, code, f"site-{number}")


def test_it_waits_for_contributions_the_model_and_the_next_round(database: Database, lab: Any) -> None:
    experiment = lab.start(rounds=2)
    round_ = lab.open(experiment)
    assert told(database, experiment) == WaitStatus(WaitReason.CONTRIBUTIONS, 1, 0, 3)
    first, *others = lab.assignments(round_)
    lab.deliver(first)
    assert told(database, experiment) == WaitStatus(WaitReason.CONTRIBUTIONS, 1, 1, 3)
    for assignment in others:
        lab.deliver(assignment)
    assert told(database, experiment) == WaitStatus(WaitReason.MODEL, 1)
    lab.commit(round_)
    assert told(database, experiment) == WaitStatus(WaitReason.ROUND, 2)
    lab.commit(lab.freeze(lab.get(experiment), 2))
    assert told(database, experiment) == WaitStatus(WaitReason.END, 2)


def test_of_more_than_are_needed_it_waits_for_those_that_close_the_round(database: Database, lab: Any) -> None:
    experiment = lab.start()
    lab.open(experiment, participants=3, needed=2)
    assert told(database, experiment) == WaitStatus(WaitReason.CONTRIBUTIONS, 1, 0, 2)


@pytest.mark.parametrize("act", ["pause", "cancel"])
def test_a_pause_is_waited_for_and_an_end_is_not(database: Database, lab: Any, act: str) -> None:
    experiment = lab.start()
    lab.open(experiment)
    with database.begin() as s:
        getattr(lifecycle, act)(s, experiment.id)
    assert told(database, experiment) == (WaitStatus(WaitReason.RESUMPTION, 1) if act == "pause" else None)


def test_the_mark_changes_with_every_step_and_with_nothing_else(database: Database, lab: Any) -> None:
    seen = list[str]()

    def look() -> str:
        with database.read() as s:
            found = experiments.get(s, experiment.id)
            return mark(found, rounds.latest(s, found.id))

    def step(number: int, act: Any) -> None:
        act()
        seen.append(look())
        assert len(set(seen)) == number

    experiment = lab.submit(rounds=2)
    step(1, lambda: None)
    with database.begin() as s:
        participants.create_enrolment(s, experiment.id, 60)
    step(1, lambda: None)
    experiment = lab.start(rounds=2)
    step(2, lambda: None)
    round_ = lab.open(experiment)
    step(3, lambda: None)
    first, *others = lab.assignments(round_)
    step(3, lambda: lab.deliver(first))
    with database.begin() as s:
        lifecycle.pause(s, experiment.id)
    step(4, lambda: None)
    with database.begin() as s:
        lifecycle.resume(s, experiment.id)
    step(5, lambda: None)
    for assignment in others:
        lab.deliver(assignment)
    step(6, lambda: None)
    lab.commit(round_)
    step(7, lambda: None)
