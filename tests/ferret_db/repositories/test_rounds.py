"""What recent rounds tell of how long participants take."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ferret_db.database import Database
from ferret_db.engine import rounds as engine
from ferret_db.repositories import rounds
from ferret_db.tables import Round

pytestmark = pytest.mark.about_database


def arrivals(database: Database, experiment_id: str, count: int = 3) -> list[float]:
    with database.read() as s:
        return sorted(rounds.arrivals(s, experiment_id, count))


def test_arrivals_are_those_of_the_last_closed_rounds(database: Database, lab: Any) -> None:
    experiment = lab.start(rounds=3, round={"quorum": 0.5})
    assert arrivals(database, experiment.id) == []
    first = lab.freeze(experiment)
    lab.commit(first)
    lab.age(Round, "opened_at", 1000, Round.id == first.id)
    experiment = lab.get(experiment)
    second = lab.open(experiment, participants=4, number=2)
    assert [round(seconds, -1) for seconds in arrivals(database, experiment.id)] == [1000] * 3  # not of the open one
    prompt, also, broken, _ = lab.assignments(second)
    lab.deliver(prompt)
    lab.deliver(also)
    lab.reject(lab.lease(broken))
    lab.age(Round, "deadline_at", 1, Round.id == second.id)
    with database.begin() as s:
        assert engine.freeze_if_due(s, second.id)
    lab.age(Round, "opened_at", 500, Round.id == second.id)
    *came, missing = arrivals(database, experiment.id, 1)
    assert ([round(seconds, -1) for seconds in came], missing) == ([500, 500], math.inf)
    assert len(arrivals(database, experiment.id)) == 6


def test_who_kept_an_abandoned_attempt_waiting_never_came(database: Database, lab: Any) -> None:
    experiment = lab.start()
    round_ = lab.open(experiment)
    lab.age(Round, "deadline_at", 1)
    with database.begin() as s:
        engine.freeze_if_due(s, round_.id)
    assert arrivals(database, experiment.id) == [math.inf] * 3


def test_a_clock_that_was_set_back_gives_no_negative_time(database: Database, lab: Any) -> None:
    experiment = lab.start()
    lab.freeze(experiment)
    lab.age(Round, "opened_at", -1000)
    assert arrivals(database, experiment.id) == [0.0] * 3
