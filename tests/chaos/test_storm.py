"""A short storm in every run of the tests; ``make chaos`` is the long one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ferret_cli.stack import broker
from tests.chaos import plan, verdict
from tests.chaos.striker import Hit

ROOT = Path(__file__).parents[2]
VICTIMS = {**plan.VICTIMS, **plan.SESSIONS}


def test_a_seed_is_one_sequence_of_kills() -> None:
    first = plan.draw(1, 20, range(6, 60), VICTIMS)
    assert first == plan.draw(1, 20, range(6, 60), VICTIMS)
    assert first != plan.draw(2, 20, range(6, 60), VICTIMS)
    assert {kill.victim for kill in first} == set(VICTIMS)
    moments = [kill.after for kill in first]
    assert moments == sorted(set(moments))
    assert all(6 <= moment < 60 for moment in moments)
    with pytest.raises(ValueError, match="larger than population"):
        plan.draw(1, 20, range(6, 20), VICTIMS)


def test_recovery_ends_with_the_next_event() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    events = [begin + timedelta(seconds=second) for second in (0, 10, 30)]
    hits = [Hit(begin + timedelta(seconds=1), "api", False), Hit(begin + timedelta(seconds=28), "train", True)]
    assert verdict.recovery(hits, events) == {
        "recovery_p50_s": 2.0,
        "recovery_p99_s": 9.0,
        "recovery_max_s": 9.0,
        "slowest": "api",
    }


@pytest.mark.redis
@pytest.mark.timeout(1500)
def test_twenty_kills_lose_nothing_and_change_nothing(need: Callable[[bool, str], None], tmp_path: Path) -> None:
    need(broker.find_program() is not None, "a Redis or Valkey server")
    asked = ["--kills", "20", "--rounds", "8", "--clients", "4", "--databases", "sqlite", "--max-seconds", "1200"]
    command = [sys.executable, "-m", "tests.chaos.storm", *asked, "--home", str(tmp_path / "storm")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == 0, f"{found}\n{done.stderr}"
    storm = found["sqlite"]
    assert (storm["kills"], storm["rounds"], storm["contributions"]) == (20, 8, 8 * 5)
    assert (storm["lost"], storm["doubled"], storm["committed_once"]) == (0, 0, True)
    assert (storm["digest_equal"], storm["ledger"]) == (True, "holds")
    assert set(storm["victims"]) == set(plan.VICTIMS)
