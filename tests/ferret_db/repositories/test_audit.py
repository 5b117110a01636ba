"""The audit log in the database: no gaps and no forks, whoever appends at once."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from sqlalchemy import delete, update

from ferret_core.protocol.audit import AuditEntry, Head, verify
from ferret_core.protocol.errors import FerretError
from ferret_db import tables
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.repositories import audit
from ferret_db.repositories.audit import AuditFilter
from tests.refusals import refused

pytestmark = pytest.mark.about_database

PROCESSES, EACH = 4, 15


def entries(database: Database) -> tuple[list[AuditEntry], Head]:
    with database.read() as s:
        rows = audit.list_page(s, AuditFilter(), 1000, oldest_first=True).items
        return [AuditEntry(*(getattr(row, name) for name in AuditEntry._fields)) for row in rows], audit.head(s)


def check(database: Database) -> int:
    return verify(*entries(database))


def append(url: str, who: str) -> None:
    database = Database(url)
    for number in range(EACH):
        with database.begin() as s:
            audit.record(s, who, "experiment.paused", f"exp_{number}", number=number)
    database.dispose()


def test_processes_that_append_at_once_leave_neither_gap_nor_fork(url: str, database: Database) -> None:
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(append, [url] * PROCESSES, [f"process-{i}" for i in range(PROCESSES)]))
    found, head = entries(database)
    assert [entry.number for entry in found] == list(range(1, PROCESSES * EACH + 1))
    assert verify(found, head) == PROCESSES * EACH
    for i in range(PROCESSES):
        own = [entry.detail["number"] for entry in found if entry.actor == f"process-{i}"]
        assert own == list(range(EACH))


def test_an_action_that_is_rolled_back_leaves_no_entry_and_no_gap(database: Database) -> None:
    def act(fails: bool) -> None:
        with database.begin() as s:
            audit.record(s, "admin", "experiment.paused", "exp_1")
            if fails:
                raise FerretError("experiment.conflict", "no")

    act(fails=False)
    with pytest.raises(FerretError):
        act(fails=True)
    act(fails=False)
    assert check(database) == 2


def test_several_entries_of_one_transaction_follow_each_other(database: Database) -> None:
    with database.begin() as s:
        for _ in range(3):
            audit.record(s, "admin", "session.opened", "")
    assert check(database) == 3


def test_what_an_entry_tells_outlives_what_it_tells_of(lab: Any, database: Database) -> None:
    experiment = lab.submit()
    with database.begin() as s:
        lifecycle.cancel(s, experiment.id)
        lifecycle.delete(s, experiment.id)
        audit.record(s, "admin", "experiment.deleted", experiment.id, name=experiment.name, rate=1e16, share=0.1)
    (entry,), _ = entries(database)
    assert (entry.subject, entry.detail) == (experiment.id, {"name": "toy", "rate": 1e16, "share": 0.1})
    assert check(database) == 1


def test_an_entry_that_is_altered_in_the_table_is_found(database: Database) -> None:
    with database.begin() as s:
        for actor in ("admin", "usr_1", "admin"):
            audit.record(s, actor, "experiment.paused", "exp_1", reason="é\u0000\u202e")
    with database.begin() as s:
        s.execute(update(tables.AuditEntry).where(tables.AuditEntry.number == 2).values(actor="admin"))
    with refused("audit.broken", "number = 2"):
        check(database)
    with database.begin() as s:
        s.execute(delete(tables.AuditEntry).where(tables.AuditEntry.number >= 2))
    with refused("audit.broken", "number = 2"):
        check(database)


def test_entries_are_found_by_who_what_and_whom(database: Database) -> None:
    with database.begin() as s:
        audit.record(s, "admin", "experiment.paused", "exp_1")
        audit.record(s, "usr_1", "experiment.paused", "exp_2")
        audit.record(s, "usr_1", "experiment.resumed", "exp_2")
    with database.read() as s:

        def numbers(**wanted: str) -> list[int]:
            return [row.number for row in audit.list_page(s, AuditFilter(**wanted), 10).items]

        assert numbers() == [3, 2, 1]
        assert numbers(actor="usr_1") == [3, 2]
        assert numbers(subject="exp_2", action="experiment.paused") == [2]
        first = audit.list_page(s, AuditFilter(), 2)
        assert [row.number for row in audit.list_page(s, AuditFilter(), 2, first.next_cursor).items] == [1]
