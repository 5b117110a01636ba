"""The server of the tests' own, which a machine without a running PostgreSQL gets."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests import postgresql_server


@pytest.mark.heavy
def test_one_is_started_where_none_runs_and_leaves_nothing() -> None:
    program = postgresql_server.find_program()
    if program is None:
        pytest.skip("no PostgreSQL programs, or a server was given: apt-get install postgresql")
    with postgresql_server.started(program) as url:
        assert postgresql_server.answers(url)
        with psycopg.connect(url) as connection:
            folder = connection.execute("SHOW data_directory").fetchone()[0]
    assert not postgresql_server.answers(url)
    assert not Path(folder).exists()
