"""Cursors: every row once, whatever the page size; foreign cursors are refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from sqlalchemy import update

from ferret_db.database import Database
from ferret_db.repositories import experiment_list
from ferret_db.repositories.experiment_list import ExperimentFilter
from ferret_db.tables import Experiment
from tests.ferret_db.conftest import pages
from tests.refusals import refused


def walk(database: Database, limit: int) -> list[str]:
    found = list(pages(database, lambda s, cursor: experiment_list.list_page(s, ExperimentFilter(), limit, cursor)))
    assert all(len(items) == limit for items in found[:-1])
    return [row.id for items in found for row in items]


@pytest.mark.about_database
@pytest.mark.parametrize("limit", [1, 2, 5, 6])
def test_pages_hold_every_row_once_newest_first(database: Database, lab: Any, limit: int) -> None:
    submitted = [lab.submit() for _ in range(5)]
    with database.begin() as s:  # rows of one moment are told apart by their ids
        s.execute(update(Experiment).values(created_at=submitted[0].created_at))
    assert walk(database, limit) == sorted((row.id for row in submitted), reverse=True)


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "é",
        "!!!!",
        encoded({}),
        encoded(1),
        encoded([]),
        encoded(["2026-05-01T00:00:00+00:00"]),
        encoded(["2026-05-01T00:00:00", "exp_1"]),
        encoded(["2026-05-01T00:00:00+00:00", 1]),
        encoded([1, "exp_1"]),
        "WzE" * 2000,
    ],
)
def test_a_cursor_that_is_none_is_refused(database: Database, cursor: str) -> None:
    with refused("request.invalid", "cursor"), database.read() as s:
        experiment_list.list_page(s, ExperimentFilter(), 10, cursor)
