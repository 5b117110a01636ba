"""Replays an experiment's ledger on a downloaded base model."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ferret_core.ledger import LedgerEntry, LedgerRecord, verify
from ferret_core.protocol.errors import FerretError
from ferret_sdk.follower import load_base

if TYPE_CHECKING:
    from ferret_sdk.run import Run


def verified_records(run: Run) -> Iterator[LedgerRecord]:
    """Each record that holds, as soon as it is known to.

    Raises ``ledger.broken`` at the first that does not, and at the end if the ledger leads to another model than
    the experiment's.
    """
    with tempfile.TemporaryDirectory(prefix="ferret-verify-") as folder:
        replica = load_base(run, Path(folder))
        yield from verify(replica, _entries(run))
    recorded = run.experiment.digest or run.experiment.base_digest
    if replica.digest != recorded:
        ends = f"the ledger of {run.id} ends after round {replica.round} with {replica.digest}"
        raise FerretError("ledger.broken", f"{ends}, but the experiment is at {recorded}")


def _entries(run: Run) -> Iterator[LedgerEntry]:
    for item in run.ledger():
        record = LedgerRecord.model_validate(item.record)
        if record.round > run.experiment.round:
            return
        yield LedgerEntry(record, item.hash, run.update(record.round))
