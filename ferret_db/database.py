"""Transactions: one per request or task, committed at the edge. Task messages are sent strictly afterwards."""

from __future__ import annotations

import logging
import sqlite3
import sys
import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from copy import copy
from datetime import datetime
from sqlite3 import SQLITE_BUSY
from sqlite3 import Connection as SqliteConnection
from sqlite3 import OperationalError as SqliteError
from typing import Any, TypeVar

from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DataError, OperationalError
from sqlalchemy.orm import Session

from ferret_core.protocol.digest import canonical_json
from ferret_core.protocol.errors import FerretError
from ferret_core.system.failpoints import failpoint
from ferret_db import clock
from ferret_db.repositories import outbox
from ferret_db.row_visibility import EVERYTHING, Reach
from ferret_db.tables import OutboxMessage

logger = logging.getLogger(__name__)

Dispatch = Callable[[list[OutboxMessage]], None]
R = TypeVar("R")

BUSY_SECONDS = 30.0
LOOK_SECONDS = 0.002
"""Seconds between two attempts to take the write lock."""
RESTORE = "restore a backup: ferret restore FILE --home NEW_FOLDER"


class Database:
    """One database, SQLite or PostgreSQL, shared by all threads of a process.

    ``dispatch`` sends task messages. Without it they wait in the outbox for a process that has it. This process starts
    simulated experiments only while fewer than ``places`` run. Its sessions see every experiment, unless it comes from
    :meth:`within`.
    """

    def __init__(self, url: str, dispatch: Dispatch | None = None, places: int = sys.maxsize) -> None:
        self._engine = new_engine(url)
        self._dispatch = dispatch
        self._places = places
        self._reach = EVERYTHING
        self._writer = self._engine.execution_options(ferret_begin="BEGIN IMMEDIATE")
        self._hasty_writer = self._writer.execution_options(ferret_flush=False)
        self._reader = self._engine.execution_options(ferret_begin="BEGIN")
        if self._engine.dialect.name == "postgresql":
            self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def within(self, reach: Reach) -> Database:
        """Returns the same database for sessions limited to ``reach``."""
        narrowed = copy(self)
        narrowed._reach = reach
        return narrowed

    @contextmanager
    def begin(self, *, flush: bool = True) -> Generator[Session]:
        """Opens a write transaction, which is committed at exit, and then sends the tasks that are due.

        Without ``flush`` the commit is not fsynced. A crash of the process loses nothing. A crash of the machine can
        lose the latest such commits, but none before a commit with ``flush``. Use it for work that can be repeated.
        """
        writer = self._writer if flush else self._hasty_writer
        with _values_checked(), self._reach.open(writer) as s:
            with s.begin():
                yield s
                failpoint("database.written")
            touched = outbox.touched(s)
        failpoint("database.committed")
        if touched:
            self.send(touched)

    def transact(self, work: Callable[[Session], R], *, flush: bool = True) -> R:
        """Runs ``work`` in one write transaction, and once more if the connection was lost or a deadlock ended it.

        The first transaction may have been committed nevertheless, so ``work`` must be idempotent. ``flush`` is as in
        :meth:`begin`.
        """
        try:
            with self.begin(flush=flush) as s:
                return work(s)
        except OperationalError as error:
            logger.warning("a transaction failed and is retried once: %s", error.orig)
        with self.begin(flush=flush) as s:
            return work(s)

    @contextmanager
    def read(self) -> Generator[Session]:
        """Opens a read transaction on one snapshot of the database. Writing in it is an error."""
        with _values_checked(), self._reach.open(self._reader) as s, s.begin():
            yield s

    def now(self, s: Session) -> datetime:
        """Returns the database's time in UTC."""
        return clock.now(s)

    def dispose(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    def send(self, experiments: Collection[str]) -> None:
        """Hands these experiments' due messages to the broker, and the messages that start the next experiments."""
        if self._dispatch is None:
            return
        try:
            with self.within(EVERYTHING).read() as s:
                due = outbox.due(s, experiments, self._places)
            if due:
                self._send(experiments, self._dispatch)
        # The change is committed, so the caller has succeeded. The reconciler sends again.
        except BrokerError as error:
            logger.warning("task messages could not be sent; they will be sent again: %s", error)
        except Exception:
            logger.exception("task messages could not be sent; they will be sent again")

    def _send(self, experiments: Collection[str], dispatch: Dispatch) -> None:
        with EVERYTHING.open(self._hasty_writer) as s, s.begin():
            messages = outbox.claim(s, experiments, self._places)
        failpoint("database.claimed")
        try:
            if messages:
                dispatch(messages)
        except Exception:
            with EVERYTHING.open(self._hasty_writer) as s, s.begin():
                outbox.unclaim(s, messages)
            raise
        failpoint("database.sent")


def new_engine(url: str, *, foreign_keys: bool = True) -> Engine:
    """Creates an engine with the transactions that ``ferret_begin`` requires (SQLite) and JSON that refuses NaN.

    Commits wait for the disk unless ``ferret_flush`` is False. ``foreign_keys`` is off for migrations, which rebuild
    tables (https://www.sqlite.org/lang_altertable.html, section 7). Raises ``settings.invalid`` for any database other
    than an SQLite file or PostgreSQL.
    """
    engine = _open(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _sqlite_connect(foreign_keys))
        event.listen(engine, "begin", _sqlite_begin)
    else:
        event.listen(engine, "begin", _postgresql_begin)
    return engine


@contextmanager
def _values_checked() -> Generator[None]:
    """Blames the sender for values that PostgreSQL cannot store: NUL, and integers beyond its columns."""
    try:
        yield
    except DataError as error:
        raise FerretError("request.invalid", f"the database cannot take a value: {error.orig}") from error


def _open(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = None
    sqlite = parsed is not None and parsed.drivername in {"sqlite", "sqlite+pysqlite"} and bool(parsed.database)
    if parsed is None or not (sqlite or parsed.drivername in {"postgresql", "postgresql+psycopg"}):
        shown = parsed.render_as_string() if parsed else url.partition(":")[0] + ":…"
        forms = "use sqlite:////absolute/path.db or postgresql://user:password@host/name"
        raise FerretError.of_field("settings.invalid", "FERRET_DATABASE_URL", shown, forms)
    return create_engine(
        parsed,
        # Enough for the 40 threads of FastAPI's pool.
        pool_size=10,
        max_overflow=30,
        pool_pre_ping=not sqlite,
        json_serializer=_json,
        connect_args={"timeout": BUSY_SECONDS} if sqlite else {},
    )


def _json(value: Any) -> str:
    return canonical_json(value).decode()


def _sqlite_connect(foreign_keys: bool) -> Callable[[SqliteConnection, Any], None]:
    def connect(connection: SqliteConnection, record: Any) -> None:
        # Python would begin a deferred transaction at the first write. Its later upgrade from reader to writer fails
        # immediately when another process writes. So Python begins none, and _sqlite_begin does.
        connection.isolation_level = None
        _use_write_ahead_log(connection)
        connection.execute(f"PRAGMA foreign_keys = {int(foreign_keys)}")

    return connect


def _use_write_ahead_log(connection: SqliteConnection) -> None:
    """Waits for other processes that switch too: SQLite's own waiting does not cover changes of the journal mode."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except SqliteError as error:
            if error.sqlite_errorcode != SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(LOOK_SECONDS)


def _sqlite_begin(connection: Connection) -> None:
    begin = connection.get_execution_options().get("ferret_begin", "BEGIN IMMEDIATE")
    driver = connection.connection.driver_connection
    assert isinstance(driver, SqliteConnection)
    # Through SQLAlchemy these would cost as much as a query.
    driver.execute(f"PRAGMA query_only = {int(begin == 'BEGIN')}")
    driver.execute(f"PRAGMA synchronous = {'FULL' if _flushes(connection) else 'NORMAL'}")
    if begin == "BEGIN":
        connection.exec_driver_sql(begin)
        return
    # SQLite's own waiting sleeps up to 100 ms between two attempts, during which other writers get the lock.
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        if not _begun(driver, begin):
            connection.exec_driver_sql(begin)  # raises the exception that callers of SQLAlchemy expect
    finally:
        driver.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")


def _begun(driver: SqliteConnection, begin: str) -> bool:
    """Begins a transaction that holds the write lock. Returns False if another one holds the lock for too long."""
    deadline = time.monotonic() + BUSY_SECONDS
    while time.monotonic() < deadline:
        try:
            driver.execute(begin)
            return True
        except SqliteError as error:
            if error.sqlite_errorcode != SQLITE_BUSY:
                return False
        time.sleep(LOOK_SECONDS)
    return False


def _postgresql_begin(connection: Connection) -> None:
    if not _flushes(connection):
        connection.exec_driver_sql("SET LOCAL synchronous_commit = off")


def _flushes(connection: Connection) -> bool:
    return connection.get_execution_options().get("ferret_flush", True)


def is_damage(error: DatabaseError) -> bool:
    """Returns True if SQLite reports a damaged file, rather than a busy, full or missing one."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def damaged(reason: str) -> FerretError:
    return FerretError("database.damaged", f"{reason}; stop Ferret and {RESTORE}")


def size_in_bytes(s: Session) -> int:
    """Returns the bytes of the whole database with its indices. For SQLite: its pages, without the write-ahead log."""
    if s.get_bind().dialect.name == "postgresql":
        return int(s.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
    pages, each = (int(s.execute(text(f"PRAGMA {name}")).scalar_one()) for name in ("page_count", "page_size"))
    return pages * each
