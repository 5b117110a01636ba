"""Clocks that disagree by a day: nothing depends on them but quiet hours, hours per day and times in the site's log."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ferret_sdk.http.retry import retry_after
from ferret_sdk.participant.egress_log import SentLog

pytestmark = pytest.mark.timeout(150)

DAY = 24 * 3600
# As a machine with a wrong clock: the C library's time for Python, and that of each module that asks for a date.
PROGRAM = """
import datetime, sys, time
offset, right = float(sys.argv.pop(1)), time.time
import ferret_cli.main, ferret_cli.join_display, ferret_cli.commands.join, ferret_sdk.participant.participant

class Wrong(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(right() + offset, tz)

time.time = lambda: right() + offset
for name, module in list(sys.modules.items()):
    if name.startswith("ferret_") and getattr(module, "datetime", None) is datetime.datetime:
        module.datetime = Wrong
ferret_cli.main.main()
"""


@pytest.mark.slow
@pytest.mark.heavy
def test_two_sites_whose_clocks_are_a_day_off_complete_an_experiment(
    api, worker, service, toy_spec, toy_data, tmp_path: Path
) -> None:
    run = service.submit(toy_spec(participants={"edge": 2}, rounds=2))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FERRET_")}
    joining: list[subprocess.Popen[str]] = []
    homes = {-DAY: tmp_path / "slow", DAY: tmp_path / "fast"}
    for offset, home in homes.items():
        environment = {**kept, "FERRET_HOME": str(home), "FERRET_CODE": run.create_code().code}
        options = ["join", "--yes", api.url, "--data", str(toy_data[0]), "--name", home.name]
        command = [sys.executable, "-c", PROGRAM, str(offset), *options]
        joining.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True))
    said = [process.communicate(timeout=120)[1] for process in joining]
    assert [process.returncode for process in joining] == [0, 0], said
    assert run.refresh().state == "completed"
    accepted = {(found.participant, found.round) for found in run.contributions() if found.state == "accepted"}
    assert accepted == {(name, number) for name in ("slow", "fast") for number in (1, 2)}
    for offset, home in homes.items():
        *_, last = SentLog(home).read()
        assert abs(last.time - datetime.now(UTC) - timedelta(seconds=offset)) < timedelta(hours=1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 30),
        ({"retry-after": "Wed, 21 Oct 2015 07:27:30 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Thu, 22 Oct 2015 07:28:00 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 60),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": "yesterday"}, None),
        ({}, None),
    ],
)
def test_when_to_ask_again_is_told_by_the_servers_clock_alone(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
