"""What a participant keeps counts exactly when its contribution does, whatever happens between."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ferret_core.ledger.record import LedgerRecord
from ferret_sdk.participant.client_state import Memory

AA, BB, CC, DD, EE = (letter * 64 for letter in "abcde")
"""Digests of contributions."""


def record(number: int, **contributions: str) -> LedgerRecord:
    named = tuple(sorted(contributions.items()))
    digests = {"base_digest": "0" * 64, "digest": "1" * 64, "update": "2" * 64, "previous": "3" * 64}
    nothing = {"clipped": (), "refused": (), "signatures": (), "halvings": 0}
    members = {"version": 1, "experiment": "simulation", "spec": "4" * 64, "round": number, **digests, **nothing}
    return LedgerRecord(contributions=named, **members)


def kept(value: float) -> dict[str, np.ndarray]:
    return {"error": np.full(3, value, np.float32)}


def test_nothing_is_recalled_before_the_first_round(tmp_path: Path) -> None:
    assert Memory(tmp_path / "memory", "clinic").recall() == {}


def test_it_counts_once_the_ledger_names_the_contribution(tmp_path: Path) -> None:
    memory = Memory(tmp_path, "clinic")
    memory.keep(AA, kept(1))
    assert memory.recall() == {}
    memory.follow(record(1, clinic=AA, other=BB))
    np.testing.assert_array_equal(memory.recall()["error"], kept(1)["error"])


def test_a_round_that_was_not_committed_leaves_what_was_before(tmp_path: Path) -> None:
    memory = Memory(tmp_path, "clinic")
    memory.keep(AA, kept(1))
    memory.follow(record(1, clinic=AA))
    memory.keep(BB, kept(2))
    memory.follow(record(2, other=CC))
    assert memory.recall()["error"][0] == 1
    memory.keep(DD, kept(3))
    memory.follow(record(3, clinic=DD))
    assert memory.recall()["error"][0] == 3
    memory.keep(EE, kept(4))
    assert {path.stem for path in tmp_path.iterdir()} == {DD, EE}, "what cannot count any more is gone"


def test_a_restart_between_upload_and_commit_loses_nothing(tmp_path: Path) -> None:
    first = Memory(tmp_path, "clinic")
    first.keep(AA, kept(1))
    again = Memory(tmp_path, "clinic")
    again.follow(record(1, clinic=AA))
    assert again.recall()["error"][0] == 1


def test_an_algorithm_without_memory_leaves_no_file(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory", "clinic")
    memory.keep(AA, {})
    memory.follow(record(1, clinic=AA))
    assert memory.recall() == {}
    assert not (tmp_path / "memory").exists()
