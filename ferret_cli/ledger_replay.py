"""Replay of an experiment's ledger on a downloaded base model, to verify it or to rebuild any round's model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ferret_core.ledger.record import LedgerRecord, broken
from ferret_core.protocol.errors import FerretError
from ferret_sdk.participant.replica_sync import entries, load_base
from ferret_sdk.service.download import require_empty

if TYPE_CHECKING:
    from ferret_core.replica.checkpoint import Manifest
    from ferret_core.replica.replica import Replica
    from ferret_sdk.service.run import Run

WEIGHTS = ".safetensors"


def verified_records(run: Run) -> Iterator[LedgerRecord]:
    """Yields each verified record at once; in rounds with a checkpoint, its weights are verified too.

    Raises ``ledger.broken`` at the first mismatch, and at the end if the ledger leads to another model than the
    experiment's.
    """
    from ferret_core.replica.replica import replay

    written = _recorded_weights(run)
    with _base(run) as replica:
        for record in replay(replica, entries(run, 0, run.experiment.round)):
            _check_weights(replica, record, written.get(record.round, {}))
            yield record
    recorded = run.experiment.digest or run.experiment.base_digest
    if replica.digest != recorded:
        ends = f"the ledger of {run.id} ends after round {replica.round} with {replica.digest}"
        raise FerretError("ledger.broken", f"{ends}, but the experiment is at {recorded}")


def replay(
    run: Run, number: int, folder: Path, on_record: Callable[[LedgerRecord], None], average: bool = False
) -> Manifest:
    """Writes the model of round ``number``, 0 being the base model, as a checkpoint into the new or empty ``folder``,
    with card and chat template; with ``average`` the mean of the models of the last rounds up to it.

    ``on_record`` is called with every verified round. Raises ``ledger.broken`` at the first mismatch, and
    ``round.not_found`` for a round that is not committed, or that is before the mean begins.
    """
    from ferret_core.replica import checkpoint
    from ferret_core.replica.replica import replay
    from ferret_core.replica.tail_averaging import TailMean

    require_empty(folder, "out")
    if number > run.experiment.round:
        message = f"is not committed yet: the last committed round of {run.id} is {run.experiment.round}"
        raise FerretError.of_field("round.not_found", "round", number, message)
    mean = TailMean(run.specification()) if average else None
    if mean is not None and number < mean.begin:
        message = f"is before round {mean.begin}, with which the mean begins: use a later one"
        raise FerretError.of_field("round.not_found", "round", number, message)
    with _base(run) as replica:
        for record in replay(replica, entries(run, 0, number)):
            on_record(record)
            if mean is not None:
                mean.update(replica)
        if mean is not None:
            mean.load_into(replica)
            replica.update_digest()
        first = mean.begin if mean else None
        return checkpoint.write_folder(replica, run.id, folder, lambda draft: run.describe(draft, number, first))


@contextmanager
def _base(run: Run) -> Generator[Replica]:
    """Yields a replica at round 0; its source files stay until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="ferret-replay-") as folder:
        yield load_base(run, Path(folder))


def _recorded_weights(run: Run) -> dict[int, dict[str, str]]:
    """Digests by round and name; only of weights, since other library versions may write the rest differently."""
    found: dict[int, dict[str, str]] = {}
    for file in run.artifacts():
        if file.name.endswith(WEIGHTS):
            found.setdefault(file.round, {})[file.name] = file.digest
    return found


def _check_weights(replica: Replica, record: LedgerRecord, recorded: dict[str, str]) -> None:
    """Raises ``ledger.broken`` unless the replica's own checkpoint has the recorded weights."""
    from ferret_core.replica import checkpoint

    if not recorded:
        return
    with tempfile.TemporaryDirectory(prefix="ferret-verify-") as folder:
        written = checkpoint.write(replica, record.experiment, Path(folder)).files
    found = {name: digest for name, digest in written.items() if name.endswith(WEIGHTS)}
    if found != recorded:
        raise broken(record, f"its checkpoint was recorded as {recorded}, and the ledger gives {found}")
