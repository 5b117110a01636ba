"""A database that is damaged, empty or gone is told at start, never begun anew beside the files of experiments."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.storage import FileKind, open_storage
from ferret_db import integrity
from ferret_db.database import Database
from ferret_runtime.settings import ServiceSettings

pytestmark = pytest.mark.usefixtures("no_settings")


@pytest.fixture
def settings(tmp_path: Path, migrated: Path) -> ServiceSettings:
    """A service that has been used: rows, and a stored file."""
    settings = ServiceSettings(home=tmp_path / "home")
    settings.home.mkdir()
    path = Path(shutil.copyfile(migrated, settings.home / "ferret.db"))
    with closing(sqlite3.connect(path)) as connection:
        rows = [(f"key-{number}", "x" * 500) for number in range(400)]
        connection.execute("CREATE TABLE padding (name TEXT PRIMARY KEY, value TEXT)")
        connection.executemany("INSERT INTO padding VALUES (?, ?)", rows)
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    open_storage(settings.storage_url).put_bytes(b"a checkpoint", FileKind.CHECKPOINT)
    return settings


@pytest.fixture
def file(settings: ServiceSettings) -> Path:
    return settings.home / "ferret.db"


def overwrite(file: Path, start: int, size: int) -> None:
    with file.open("r+b") as stream:
        stream.seek(start)
        stream.write(b"\xff" * size)


def refused(settings: ServiceSettings) -> FerretError:
    with pytest.raises(FerretError, match="restore a backup") as caught:
        integrity.require(settings)
    return caught.value


def test_a_whole_database_passes(settings: ServiceSettings) -> None:
    integrity.require(settings)


def test_a_first_start_passes(tmp_path: Path) -> None:
    integrity.require(ServiceSettings(home=tmp_path / "new"))
    assert not (tmp_path / "new" / "ferret.db").exists()


@pytest.mark.parametrize("start", ["header", "schema", "middle"])
def test_a_damaged_database_is_refused(settings: ServiceSettings, file: Path, start: str) -> None:
    place = {"header": 0, "schema": 100, "middle": file.stat().st_size // 2 // 4096 * 4096}[start]
    overwrite(file, place, 2000)
    assert refused(settings).code == "database.damaged"


@pytest.mark.parametrize("how", ["empty", "gone"])
def test_a_lost_database_is_not_begun_anew(settings: ServiceSettings, file: Path, how: str) -> None:
    if how == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
    assert refused(settings).code == "database.missing"
    assert not file.exists() or file.stat().st_size == 0


@pytest.mark.postgresql
def test_an_empty_postgresql_beside_files_is_lost(
    settings: ServiceSettings, postgresql: Callable[[], Any], tmp_path: Path
) -> None:
    with postgresql() as url:
        other = ServiceSettings(home=settings.home, database_url=url)
        assert refused(other).code == "database.missing"
        integrity.require(ServiceSettings(home=tmp_path / "another", database_url=url))


def test_the_check_of_a_large_database_ends(
    settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(integrity, "CHECK_SECONDS", 0)
    monkeypatch.setattr(integrity, "STEP_INSTRUCTIONS", 10)
    integrity.require(settings)
    assert "the check at start was ended" in caplog.text


@pytest.fixture
def database(settings: ServiceSettings) -> Iterator[Database]:
    database = Database(settings.database_url)
    yield database
    database.dispose()


def test_readiness_reads_every_table(database: Database, file: Path) -> None:
    with database.read() as s:
        integrity.read_everywhere(s)
    database.dispose()
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'experiments'").fetchone()
    overwrite(file, (page - 1) * 4096, 100)
    with pytest.raises(FerretError) as caught, database.read() as s:
        integrity.read_everywhere(s)
    assert caught.value.code == "database.damaged"
