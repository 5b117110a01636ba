"""A site's account of its records: spent before a unit is drawn, and never beyond the limit it began with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ferret_core.privacy.accounting import epsilon_of
from ferret_core.privacy.mechanism import RecordMechanism
from ferret_core.protocol.spec import ExperimentSpec
from ferret_sdk.participant.record_account import RecordAccount, RecordTotals, accounts
from tests.refusals import refused

EXPERIMENT = "exp_0123456789abcdef"
PRIVACY = {"unit": "example", "epsilon": 8.0, "noise_multiplier": 1.2, "batch": 100, "records_least": 2000}


def spec_of(rounds: int = 200, **privacy: Any) -> ExperimentSpec:
    tree = {
        "name": "records",
        "rounds": rounds,
        "model": {"source": "./model"},
        "dataset": {"name": "jsonl", "train": "train.jsonl"},
        "participants": {"edge": 5},
        "secure": {"aggregation": "masked"},
        "privacy": {**PRIVACY, **privacy},
    }
    return ExperimentSpec.model_validate(tree)


def spend(home: Path, spec: ExperimentSpec) -> None:
    RecordAccount(home, EXPERIMENT).spend(spec, RecordMechanism.of(spec, 5))


def test_releases_count_over_restarts_up_to_the_limit(tmp_path: Path) -> None:
    spec = spec_of(epsilon=1.6)
    assert RecordAccount(tmp_path, EXPERIMENT).totals() is None
    fits = next(count for count in range(1, 500) if epsilon_of(0.05, 1.2, count + 1, 1e-6) > 1.6)
    for _ in range(fits):
        spend(tmp_path, spec)
    expected = epsilon_of(0.05, 1.2, fits, 1e-6)
    assert RecordAccount(tmp_path, EXPERIMENT).totals() == RecordTotals(expected, 1.6, 1e-6)
    with refused("privacy.spent", field="privacy.epsilon"):
        RecordAccount(tmp_path, EXPERIMENT).require(spec, RecordMechanism.of(spec, 5))
    with refused("privacy.spent"):
        spend(tmp_path, spec)
    assert RecordAccount(tmp_path, EXPERIMENT).totals() == RecordTotals(expected, 1.6, 1e-6)
    assert accounts(tmp_path) == {EXPERIMENT: RecordTotals(expected, 1.6, 1e-6)}
    RecordAccount(tmp_path, "exp_another").require(spec, RecordMechanism.of(spec, 5))


def test_a_server_that_promises_less_later_does_not_raise_the_limit(tmp_path: Path) -> None:
    spend(tmp_path, spec_of(1, epsilon=1.4))
    with refused("privacy.spent"):
        spend(tmp_path, spec_of(200, epsilon=100.0))
    for name, value in {"delta": 1e-5, "unit": "field:patient", "mechanism": "central"}.items():
        with refused("server.unexpected", "nothing is trained", field=f"privacy.{name}"):
            spend(tmp_path, spec_of(**{name: value}))


def test_a_damaged_account_begins_nothing_anew(tmp_path: Path) -> None:
    spend(tmp_path, spec_of())
    (tmp_path / f"participants/records/{EXPERIMENT}.json").write_text("{}}")
    with refused("terms.invalid"):
        spend(tmp_path, spec_of())


@pytest.mark.heavy
def test_processes_killed_at_any_time_and_in_parallel_lose_no_release(tmp_path: Path) -> None:
    """Each child spends without end and reports a release only after ``spend``; the account has at least as many."""
    code = (
        "import sys; from pathlib import Path; from tests.ferret_sdk.participant.test_record_account import *\n"
        "while True:\n    spend(Path(sys.argv[1]), spec_of(10_000, epsilon=20.0)); print('spent', flush=True)\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    reported = 0
    for child, wanted in zip(children, (3, 7), strict=True):
        assert child.stdout is not None
        for _ in range(wanted):
            assert child.stdout.readline() == "spent\n"
        child.kill()
        reported += wanted + len(child.stdout.readlines())
        child.stdout.close()
        child.wait()
    totals = RecordAccount(tmp_path, EXPERIMENT).totals()
    assert totals is not None
    assert epsilon_of(0.05, 1.2, reported, 1e-6) <= totals.epsilon <= epsilon_of(0.05, 1.2, reported + 2, 1e-6)
