"""The tests' PostgreSQL server: the one that runs here, or one of their own where only its programs are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from ferret_cli.stack.ports import free_port

GIVEN = os.environ.get("FERRET_TEST_POSTGRESQL")
USUAL = GIVEN or "postgresql://postgres@127.0.0.1:5432/postgres"
MISSING = f"""no PostgreSQL server answers at {USUAL}; {
    "start it or unset FERRET_TEST_POSTGRESQL"
    if GIVEN
    else "apt-get install postgresql, and the tests start one, or set FERRET_TEST_POSTGRESQL"
}"""


def answers(url: str) -> bool:
    """Whether a server lets us in there."""
    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


def find_program() -> str | None:
    """``pg_ctl``, which Debian keeps off the PATH, unless a server was given."""
    if GIVEN:
        return None
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return shutil.which("pg_ctl") or (str(debian[-1]) if debian else None)


@contextmanager
def started(program: str) -> Iterator[str]:
    """The URL of an empty server on a free port, gone afterwards with all it held."""
    with tempfile.TemporaryDirectory(prefix="ferret-postgresql-") as folder:
        # PostgreSQL refuses to run as root.
        other = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        if other:
            shutil.chown(folder, "postgres", "postgres")
        port, data, log = free_port(), f"{folder}/data", f"{folder}/log"
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"

        def pg_ctl(*arguments: str) -> None:
            command = [program, *arguments, "--pgdata", data, "--silent"]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, **other)  # pyrefly: ignore[no-matching-overload]

        pg_ctl("initdb", "--options", "--username=postgres --auth=trust --no-sync")
        pg_ctl("start", "--wait", "--log", log, "--options", options)
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            pg_ctl("stop", "--mode=immediate")
