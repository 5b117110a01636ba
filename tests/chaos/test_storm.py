"""Short storms, in ``make test-all``; ``make chaos`` has the long ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ferret_cli.stack import broker
from tests.chaos import checks, schedule
from tests.chaos.killer import Hit

ROOT = Path(__file__).parents[2]
VICTIMS = {"sqlite": schedule.VICTIMS, "postgresql": {**schedule.VICTIMS, **schedule.SESSIONS}}


def test_a_seed_is_one_sequence_of_kills() -> None:
    victims = VICTIMS["postgresql"]
    first = schedule.draw(1, 20, range(6, 60), victims)
    assert first == schedule.draw(1, 20, range(6, 60), victims)
    assert first != schedule.draw(2, 20, range(6, 60), victims)
    assert {kill.target for kill in first if kill.hangs} == set(schedule.HUNG)
    assert {kill.victim for kill in first} == set(victims)
    moments = [kill.after for kill in first]
    assert moments == sorted(set(moments))
    assert all(6 <= moment < 60 for moment in moments)
    with pytest.raises(ValueError, match="larger than population"):
        schedule.draw(1, 20, range(6, 20), victims)


def test_recovery_ends_with_the_next_event() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    events = [begin + timedelta(seconds=second) for second in (0, 10, 30)]
    hits = [Hit(begin + timedelta(seconds=1), "api", False), Hit(begin + timedelta(seconds=28), "train", True)]
    assert checks.recovery(hits, events) == {
        "recovery_p50_s": 2.0,
        "recovery_p99_s": 9.0,
        "recovery_max_s": 9.0,
        "slowest": "api",
    }


@pytest.mark.slow
@pytest.mark.redis
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def test_twenty_strikes_lose_nothing_and_change_nothing(
    need: Callable[[bool, str], None], tmp_path: Path, database: str
) -> None:
    need(broker.find_program() is not None, "a broker: apt-get install redis-server")
    asked = ["--kills", "20", "--rounds", "8", "--clients", "4", "--databases", database, "--max-seconds", "1200"]
    command = [sys.executable, "-m", "tests.chaos.storm", *asked, "--home", str(tmp_path / "storm")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == 0, f"{found}\n{done.stderr}"
    storm = found[database]
    assert (storm["kills"], storm["rounds"], storm["contributions"]) == (20, 8, 8 * 5)
    assert (storm["lost"], storm["doubled"], storm["committed_once"]) == (0, 0, True)
    assert (storm["digest_equal"], storm["ledger"]) == (True, "holds")
    assert set(storm["victims"]) == set(VICTIMS[database])
    assert storm["replaced"] >= 1
