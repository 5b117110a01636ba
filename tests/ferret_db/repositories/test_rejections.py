"""Refused uploads as they are listed, whatever the refused upload held."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_db.database import Database
from ferret_db.engine import assignments
from ferret_db.repositories import rejections
from ferret_db.tables import Experiment
from tests.ferret_db.conftest import pages

pytestmark = pytest.mark.about_database


def refuse(database: Database, assignment_id: str, code: str, detail: str = "no") -> None:
    with database.begin() as s:
        assignments.refuse(s, assignment_id, FerretError(code, detail))


@pytest.fixture
def experiment(database: Database, lab: Any) -> Experiment:
    """Refused uploads in both rounds, and in another experiment."""
    experiment = lab.start()
    for number in (1, 2):
        round_ = lab.open(lab.get(experiment), number=number)
        for assignment in lab.assignments(round_):
            refuse(database, assignment.id, "lease.lost")
            refuse(database, assignment.id, "contribution.malformed")
            lab.deliver(assignment)
        lab.commit(round_)
    refuse(database, lab.assignments(lab.open(lab.start()))[0].id, "lease.lost")
    return experiment


def test_pages_go_through_rounds_and_participants(database: Database, experiment: Experiment) -> None:
    listed = pages(database, lambda s, cursor: rejections.list_page(s, experiment.id, 5, cursor))
    found = [(row.round, row.participant, row.code) for items in listed for row in items]
    codes = ("contribution.malformed", "lease.lost")
    assert found == [(number, f"client-{i}", code) for number in (1, 2) for i in range(3) for code in codes]


def test_one_round_can_be_asked_for(database: Database, experiment: Experiment) -> None:
    with database.read() as s:
        assert {row.round for row in rejections.list_page(s, experiment.id, 10, round=2).items} == {2}


@pytest.mark.parametrize("detail", ["metrics.\x00 = 1", "metrics.\ud800 = 1", "line\nline", "x" * 100_000])
def test_what_came_with_an_upload_cannot_keep_its_refusal_from_being_noted(
    database: Database, lab: Any, detail: str
) -> None:
    assignment = lab.assignments(lab.open(lab.start()))[0]
    refuse(database, assignment.id, "contribution.malformed", detail)
    with database.read() as s:
        (row,) = rejections.list_page(s, assignment.experiment_id, 10).items
    assert row.detail.isprintable()
    assert row.detail[:4] == detail[:4]
    assert len(row.detail) <= rejections.DETAIL_LENGTH
