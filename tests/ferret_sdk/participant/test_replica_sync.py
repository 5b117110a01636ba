"""Records of the ledger as a participant follows them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ferret_core.ledger.record import LedgerRecord
from ferret_sdk.participant.replica_sync import entries
from tests.refusals import refused


def test_a_ledger_of_another_experiment_is_refused() -> None:
    other = LedgerRecord(
        version=1,
        experiment="exp_0123456789abcdef",
        spec="3" * 64,
        round=1,
        base_digest="0" * 64,
        digest="1" * 64,
        update="2" * 64,
        contributions=(),
        previous="",
        clipped=(),
        refused=(),
        signatures=(),
        halvings=0,
    )
    item = SimpleNamespace(record=other.model_dump(mode="json"), hash=other.hash, update_size=1)
    run: Any = SimpleNamespace(id="exp_ffffffffffffffff", ledger=lambda after: [item], update=lambda *about: b"")
    with refused("ledger.broken", "another experiment"):
        next(entries(run, 0, 1))
    run.id = other.experiment
    assert next(entries(run, 0, 1)).record == other
