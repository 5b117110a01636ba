"""The ``ferret`` command as a process, as the tests of the command line start it."""

from __future__ import annotations

from tests.ferret_cli.conftest import broker, environment, ferret, home, start_served

__all__ = ["broker", "environment", "ferret", "home", "start_served"]
