"""The ``ferret`` command as a process, as the tests of the command line start it, and what benchmarks need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from ferret_bench._control import databases
from ferret_cli.stack import broker as embedded
from tests.ferret_cli.conftest import broker, environment, ferret, ferret_in_process, home, start_served

__all__ = ["both_databases", "broker", "environment", "ferret", "ferret_in_process", "home", "start_served"]


@pytest.fixture(scope="module")
def both_databases(
    need: Callable[[bool, str], None], postgresql: Callable[..., AbstractContextManager[str]]
) -> Iterator[None]:
    """What a benchmark needs that measures ``ferret serve`` on SQLite and on PostgreSQL."""
    need(embedded.find_program() is not None, "a broker: apt-get install redis-server")
    with postgresql() as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv(databases.SETTING, url)
        yield
