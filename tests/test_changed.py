"""Which tests run after which change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.changed import ROOT, Changes

TESTS = Path(__file__).parent


@pytest.mark.parametrize(
    ("changed", "can_break", "cannot"),
    [
        ("ferret_core/ledger/record.py", "ferret_core/ledger/test_record.py", "ferret_core/protocol/test_digest.py"),
        (
            "ferret_core/protocol/sanitize.py",
            "ferret_core/ledger/test_record.py",
            "scripts/test_lock.py",
        ),  # by way of errors.py
        ("ferret_core/algorithms/topk.py", "contract/test_algorithm.py", "ferret_core/ledger/test_record.py"),
        ("tests/process_groups.py", "ferret_core/distributed/test_barrier.py", "ferret_core/ledger/test_record.py"),
        ("tests/api/conftest.py", "api/test_users.py", "ferret_core/ledger/test_record.py"),
        ("docs/research/theory.md", "test_docs.py", "ferret_core/ledger/test_record.py"),
    ],
)
def test_selects_what_a_change_can_break(changed: str, can_break: str, cannot: str) -> None:
    changes = Changes([changed])
    assert changes.can_break(TESTS / can_break, starts_processes=False)
    assert not changes.can_break(TESTS / cannot, starts_processes=False)


def test_selects_everything_after_a_change_of_settings() -> None:
    assert Changes(["pyproject.toml"]).can_break(TESTS / "ferret_core/ledger/test_record.py", starts_processes=False)


def test_selects_what_starts_processes_after_a_change_of_the_service() -> None:
    test = TESTS / "e2e/test_form.py"
    assert Changes(["worker/ferret_worker/aggregate.py"]).can_break(test, starts_processes=True)
    assert not Changes(["scripts/lock.py"]).can_break(test, starts_processes=True)
    assert (ROOT / "worker/ferret_worker/aggregate.py").exists()
