"""No process of the service starts on a database of another version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from ferret_core.protocol.errors import Exit
from ferret_db import migrate, schema_version
from ferret_db.database import Database
from tests.refusals import refused

pytestmark = pytest.mark.heavy

PROCESSES = [("ferret_api", ["--port", "0"]), ("ferret_worker", ["train"])]


@pytest.fixture(params=["never migrated", pytest.param("newer", marks=pytest.mark.slow)])
def database_url(request: pytest.FixtureRequest, empty_url: str) -> str:
    if request.param == "newer":
        migrate.upgrade(empty_url)
        pretend_later(empty_url)
    return empty_url


def pretend_later(url: str) -> None:
    database = Database(url)
    with database.begin() as s:
        s.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.dispose()


@pytest.mark.parametrize(("module", "arguments"), PROCESSES)
def test_it_says_so_in_one_line_without_a_library_that_only_serving_needs(
    database_url: str, tmp_path: Path, module: str, arguments: list[str]
) -> None:
    program = f"""
import sys
from {module}.__main__ import main
code = main({arguments})
print([name for name in ("celery", "fastapi", "torch", "transformers") if name in sys.modules])
sys.exit(code)
"""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FERRET_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**kept, "FERRET_HOME": str(tmp_path / "home"), "FERRET_DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stdout) == (Exit.UNREACHABLE, "[]\n")
    (line,) = done.stderr.splitlines()
    assert f"needs {schema_version.HEAD}; run `ferret migrate`" in line


def test_a_database_of_a_later_version_is_not_migrated(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    pretend_later(empty_url)
    assert (migrate.knows("0001"), migrate.knows("9999")) == (True, False)
    with refused("server.not_ready", "9999"):
        migrate.upgrade(empty_url)
    assert schema_version.current(empty_url) == "9999"
