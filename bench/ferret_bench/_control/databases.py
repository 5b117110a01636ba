"""Empty databases of each kind that the service supports."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.sql import SQL, Identifier
from sqlalchemy import func, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.orm import Session

SETTING = "FERRET_TEST_POSTGRESQL"
NAMES = ("sqlite", "postgresql")


def missing(name: str) -> str | None:
    """Returns the reason that such a database is not possible here, or None."""
    if name != "postgresql":
        return None
    if not (server := os.environ.get(SETTING)):
        return f"needs a PostgreSQL server that may create databases: set {SETTING} to its URL"
    try:
        _connect(server).close()
    except (ArgumentError, psycopg.Error) as error:
        return f"the server in {SETTING} cannot be reached: {error}"
    return None


@contextmanager
def empty(name: str, folder: Path) -> Generator[str]:
    """Yields the URL of a database without tables: a file in ``folder``, or one created in the server for the block."""
    if name == "sqlite":
        yield f"sqlite:///{folder}/ferret.db"
        return
    server = os.environ[SETTING]
    database = f"ferret_bench_{secrets.token_hex(8)}"
    with _connect(server) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(database)))
        try:
            yield make_url(server).set(database=database).render_as_string(hide_password=False)
        finally:
            connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(database)))


def bytes_of(s: Session) -> int:
    """Returns the disk space of the session's database, without a SQLite file's log."""
    if s.get_bind().dialect.name == "sqlite":
        return s.execute(text("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")).scalar_one()
    return s.execute(select(func.pg_database_size(func.current_database()))).scalar_one()


def _connect(server: str) -> psycopg.Connection:
    """Connects to ``server``, an SQLAlchemy URL as in the service's setting, with or without a driver."""
    url = make_url(server).set(drivername="postgresql")
    return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True, connect_timeout=3)
