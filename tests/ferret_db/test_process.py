"""No process of the service starts on a database of another version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import text

from ferret_core.protocol.errors import Exit, FerretError
from ferret_db import migrate
from ferret_db.database import Database

pytestmark = pytest.mark.heavy

PROCESSES = [["ferret_api", "--port", "0"], ["ferret_worker", "train"]]


@pytest.fixture(params=["never migrated", "older", "newer"])
def database_url(request: pytest.FixtureRequest, empty_url: str) -> str:
    if request.param == "older":
        with migrate.migrating(empty_url) as config:
            command.upgrade(config, "0001")
    elif request.param == "newer":
        migrate.upgrade(empty_url)
        pretend_later(empty_url)
    return empty_url


def pretend_later(url: str) -> None:
    database = Database(url)
    with database.begin() as s:
        s.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.dispose()


@pytest.mark.parametrize(
    "empty_url",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.slow])],
    indirect=True,
)
@pytest.mark.parametrize("module", PROCESSES, ids=" ".join)
def test_it_says_so_in_one_line_and_ends(database_url: str, tmp_path: Path, module: list[str]) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FERRET_")}
    done = subprocess.run(
        [sys.executable, "-m", *module],
        env={**kept, "FERRET_HOME": str(tmp_path / "home"), "FERRET_DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == Exit.UNREACHABLE
    (line,) = done.stderr.splitlines()
    assert f"needs {migrate.head()}; run `ferret migrate`" in line


@pytest.mark.parametrize("module", ["ferret_api", "ferret_worker"])
def test_saying_so_takes_no_library_that_only_serving_needs(empty_url: str, tmp_path: Path, module: str) -> None:
    program = f"""
import sys
from {module}.__main__ import main
code = main({["train"] if module == "ferret_worker" else []})
print(code, [name for name in ("celery", "fastapi", "torch", "transformers") if name in sys.modules])
"""
    environment = {**os.environ, "FERRET_HOME": str(tmp_path / "home"), "FERRET_DATABASE_URL": empty_url}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{Exit.UNREACHABLE:d} []\n"


def test_a_database_of_a_later_version_is_not_migrated(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    pretend_later(empty_url)
    assert (migrate.knows("0001"), migrate.knows("9999")) == (True, False)
    with pytest.raises(FerretError, match="9999, which a later version of Ferret made") as caught:
        migrate.upgrade(empty_url)
    assert caught.value.code == "server.not_ready"
    assert migrate.current(empty_url) == "9999"
