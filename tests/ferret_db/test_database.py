"""Transactions: what commits, what is sent and when, who waits for whom."""

from __future__ import annotations

import sqlite3
from contextlib import closing, nullcontext
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, StatementError
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.task_names import TaskName
from ferret_db.database import Database
from ferret_db.repositories import events, experiment_list, experiments, outbox
from ferret_db.repositories.experiment_list import ExperimentFilter
from ferret_db.tables import Enrolment, OutboxMessage
from tests.refusals import refused

pytestmark = pytest.mark.about_database


def messages(database: Database) -> list[OutboxMessage]:
    with database.read() as s:
        return list(s.scalars(select(OutboxMessage).order_by(OutboxMessage.id)))


def test_an_error_rolls_everything_back_and_sends_nothing(database: Database, lab: Any, sent: list[Any]) -> None:
    def broken() -> None:
        with database.begin() as s:
            experiments.add(s, lab.spec())
            outbox.add(s, TaskName.COORDINATE, "exp_1")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    with database.read() as s:
        assert experiment_list.list_page(s, ExperimentFilter(), 10).items == []
    assert messages(database) == []
    assert sent == []


def test_messages_are_sent_after_the_commit(url: str) -> None:
    seen: list[bool] = []

    def dispatch(batch: list[OutboxMessage]) -> None:
        other = Database(url)
        with other.read() as s:
            seen.extend(s.get(OutboxMessage, message.id) is not None for message in batch)
        other.dispose()

    database = Database(url, dispatch)
    with database.begin() as s:
        outbox.add(s, TaskName.COORDINATE, "exp_1")
        outbox.add(s, TaskName.TRAIN, "asg_1")
        assert seen == []
    assert seen == [True, True]
    assert [(message.sent_at is not None, message.attempts) for message in messages(database)] == [(True, 1)] * 2
    database.dispose()


def test_a_commit_waits_for_the_disk_unless_told_otherwise(url: str) -> None:
    of_sqlite = url.startswith("sqlite")
    asks = "PRAGMA synchronous" if of_sqlite else "SHOW synchronous_commit"
    waits, hurries = (2, 1) if of_sqlite else ("on", "off")
    if not of_sqlite:  # where the test server's default is off
        url = make_url(url).update_query_dict({"options": "-csynchronous_commit=on"}).render_as_string(False)
    database = Database(url)
    for flush in (True, False, True):
        with database.begin(flush=flush) as s:
            assert s.scalar(text(asks)) == (waits if flush else hurries)
        assert database.transact(lambda s: s.scalar(text(asks)), flush=flush) == (waits if flush else hurries)
    with database.begin() as s:
        assert s.scalar(text(asks)) == waits
    database.dispose()


def test_a_broker_that_fails_leaves_messages_in_the_outbox(url: str, caplog: pytest.LogCaptureFixture) -> None:
    def dispatch(batch: list[OutboxMessage]) -> None:
        raise ConnectionError("no broker")

    database = Database(url, dispatch)
    with database.begin() as s:
        outbox.add(s, TaskName.COORDINATE, "exp_1")
    assert [(message.sent_at, message.attempts) for message in messages(database)] == [(None, 1)]
    assert "no broker" in caplog.text
    database.dispose()


def test_without_a_dispatcher_messages_wait(url: str) -> None:
    database = Database(url)
    with database.begin() as s:
        outbox.add(s, TaskName.COORDINATE, "exp_1")
    assert [(message.sent_at, message.attempts) for message in messages(database)] == [(None, 0)]
    database.dispose()


def test_rows_stay_readable_after_the_commit(lab: Any) -> None:
    experiment = lab.submit()
    assert (experiment.name, experiment.last_event_seq, experiment.created_at.tzinfo) == ("toy", 1, UTC)


def test_reading_cannot_write(database: Database, lab: Any) -> None:
    with pytest.raises(DBAPIError, match=r"(?i)read-?only"), database.read() as s:
        experiments.add(s, lab.spec())
    assert lab.submit().id  # the pooled connection is writable again


def test_reading_sees_one_snapshot(database: Database, lab: Any) -> None:
    lab.submit()
    with database.read() as s:
        assert len(experiment_list.list_page(s, ExperimentFilter(), 10).items) == 1
        lab.submit()
        assert len(experiment_list.list_page(s, ExperimentFilter(), 10).items) == 1


def test_writers_take_turns(database: Database, lab: Any) -> None:
    experiment = lab.submit()

    def append(thread: int) -> None:
        for _ in range(10):
            with database.begin() as s:
                experiments.get(s, experiment.id)  # reading first is what breaks a deferred SQLite transaction
                events.add(s, experiment.id, "round.opened", round=thread)

    lab.race(append)
    with database.read() as s:
        found = events.after(s, experiment.id, 0, 100)
    assert [event.seq for event in found] == list(range(1, 82))


def test_foreign_keys_hold(database: Database) -> None:
    with pytest.raises(DBAPIError, match=r"(?i)foreign key"), database.begin() as s:
        s.add(Enrolment(experiment_id="exp_none", code_hash="x", expires_at=database.now(s)))


def test_sqlite_writes_through_to_the_disk(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/ferret.db")
    with database.read() as s:
        pragmas = {name: s.scalar(text(f"PRAGMA {name}")) for name in ("journal_mode", "synchronous", "busy_timeout")}
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 30_000}
    database.dispose()


def test_a_new_sqlite_file_is_opened_while_another_process_writes_to_it(tmp_path: Path) -> None:
    """SQLite refuses to change the journal mode at once there, whatever its busy timeout."""
    path = tmp_path / "ferret.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE other (id INTEGER)")
        other.execute("BEGIN IMMEDIATE")
        commit = Timer(0.1, other.execute, ["COMMIT"])
        commit.start()
        database = Database(f"sqlite:///{path}")
        with database.read() as s:
            assert s.scalar(text("PRAGMA journal_mode")) == "wal"
        database.dispose()
        commit.join()


def test_the_clock_is_the_databases(database: Database) -> None:
    with database.read() as s:
        first, second = database.now(s), database.now(s)
    assert first.tzinfo is UTC
    assert first <= second
    assert abs(first - datetime.now(UTC)) < timedelta(seconds=5)


def test_times_come_back_in_utc_and_sort(database: Database, lab: Any) -> None:
    experiment = lab.submit()
    noon = datetime(2026, 5, 1, 14, 0, 0, 120_000, tzinfo=timezone(timedelta(hours=2)))
    with database.begin() as s:
        for i in range(3):
            expires_at = noon + timedelta(microseconds=i)
            s.add(Enrolment(experiment_id=experiment.id, code_hash=str(i), expires_at=expires_at))
    with database.read() as s:
        later = s.scalars(select(Enrolment).where(Enrolment.expires_at > noon).order_by(Enrolment.expires_at)).all()
    assert [row.expires_at.isoformat() for row in later] == [
        "2026-05-01T12:00:00.120001+00:00",
        "2026-05-01T12:00:00.120002+00:00",
    ]


def test_a_time_without_timezone_is_refused(database: Database) -> None:
    with pytest.raises(StatementError, match="has no timezone"), database.begin() as s:
        s.add(Enrolment(experiment_id="exp", code_hash="x", expires_at=datetime(2026, 5, 1)))


@pytest.mark.parametrize(
    "url", ["sqlite://", "mysql://root:secret@localhost/db", "postgres://u:secret@h/d", "nonsense"]
)
def test_other_databases_are_refused_without_telling_the_password(url: str) -> None:
    with refused("settings.invalid", "sqlite:////absolute/path.db") as caught:
        Database(url)
    assert "secret" not in caught.value.detail


def test_a_nul_character_which_postgresql_cannot_take_is_the_callers_error(database: Database, url: str) -> None:
    found: list[Any] = []
    refused = pytest.raises(FerretError, match="NUL") if url.startswith("postgresql") else nullcontext()
    with refused, database.read() as s:
        found = experiment_list.list_page(s, ExperimentFilter(name="a\0b"), 10).items
    assert found == []


@pytest.mark.parametrize("url", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True)
def test_a_transaction_whose_connection_was_cut_is_made_once_more(database: Database, lab: Any) -> None:
    tries: list[str] = []

    def work(s: Session) -> str:
        tries.append(experiments.add(s, lab.spec()).id)
        if len(tries) == 1:
            with database.begin() as other:
                cut = text("SELECT pg_terminate_backend(:pid)")
                other.execute(cut, {"pid": s.scalar(text("SELECT pg_backend_pid()"))})
        return experiments.add(s, lab.spec()).id

    last = database.transact(work)
    with database.read() as s:
        kept = {row.id for row in experiment_list.list_page(s, ExperimentFilter(), 10).items}
    assert kept == {tries[1], last}
    assert len(tries) == 2


def test_any_other_error_ends_a_transaction_at_once(database: Database) -> None:
    tries: list[int] = []

    def work(s: Session) -> None:
        tries.append(1)
        raise FerretError("round.closed", "too late")

    with pytest.raises(FerretError):
        database.transact(work)
    assert tries == [1]
