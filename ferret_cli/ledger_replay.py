"""Replay of an experiment's ledger on a downloaded base model, to verify it or to rebuild any round's model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ferret_core.ledger.record import LedgerEntry, LedgerRecord, broken
from ferret_core.protocol.buffers import mapped
from ferret_core.protocol.errors import FerretError
from ferret_sdk.participant.replica_sync import entries, load_base
from ferret_sdk.service.download import require_empty

if TYPE_CHECKING:
    from ferret_core.replica.checkpoint import Manifest
    from ferret_core.replica.replica import Replica
    from ferret_core.secure.transcript import Transcript
    from ferret_sdk.service.run import Run

WEIGHTS = ".safetensors"


def verified_records(run: Run, *, sums: bool = False) -> Iterator[LedgerRecord]:
    """Yields each verified record at once; in rounds with a checkpoint, its weights are verified too.

    With ``sums``, secure sums are repeated from their transcripts and masked vectors.

    Raises ``ledger.broken`` at the first mismatch, and at the end if the ledger leads to another model than the
    experiment's; ``request.invalid`` with ``sums`` for sums that only the server can make.
    """
    from ferret_core.replica.replica import replay

    if sums and run.specification().privacy.central:
        message = "repeats sums under masks, and here the server added noise to contributions that only it has: omit it"
        raise FerretError.of_field("request.invalid", "--sums", True, message)
    written = _recorded_weights(run)
    with _base(run) as replica:
        for record in replay(replica, _summed(run, replica) if sums else entries(run, 0, run.experiment.round)):
            _check_weights(replica, record, written.get(record.round, {}))
            yield record
    recorded = run.experiment.digest or run.experiment.base_digest
    if replica.digest != recorded:
        ends = f"the ledger of {run.id} ends after round {replica.round} with {replica.digest}"
        raise FerretError("ledger.broken", f"{ends}, but the experiment is at {recorded}")


def replay(run: Run, number: int, folder: Path, on_record: Callable[[LedgerRecord], None]) -> Manifest:
    """Writes the model of round ``number``, 0 being the base model, as a checkpoint into the new or empty ``folder``,
    with card and chat template.

    ``on_record`` is called with every verified round. Raises ``ledger.broken`` at the first mismatch, and
    ``round.not_found`` for a round that is not committed.
    """
    from ferret_core.replica import checkpoint
    from ferret_core.replica.replica import replay

    require_empty(folder, "out")
    if number > run.experiment.round:
        message = f"is not committed yet: the last committed round of {run.id} is {run.experiment.round}"
        raise FerretError.of_field("round.not_found", "round", number, message)
    with _base(run) as replica:
        for record in replay(replica, entries(run, 0, number)):
            on_record(record)
        return checkpoint.write_folder(replica, run.id, folder, lambda draft: run.describe(draft, number))


def _summed(run: Run, replica: Replica) -> Iterator[LedgerEntry]:
    """Yields the ledger's entries, each after its sums were repeated on the ``replica`` at the round before."""
    from ferret_core.aggregation.masked_sum import verify_sums

    for entry in entries(run, 0, run.experiment.round):
        record = entry.record
        if record.groups:
            with tempfile.TemporaryDirectory(prefix="ferret-sums-") as folder:
                transcripts = run.transcripts(record.round)
                masked = dict[str, memoryview]()
                for transcript in transcripts:
                    masked |= _masked_vectors(run, record, transcript, Path(folder))
                verify_sums(replica, record, transcripts, masked)
        yield entry


def _masked_vectors(run: Run, record: LedgerRecord, transcript: Transcript, folder: Path) -> dict[str, memoryview]:
    """Downloads the masked vectors of the survivors into ``folder``, and returns them memory-mapped.

    Raises ``ledger.broken`` for a survivor without a contribution in the ``record``.
    """
    digests = dict(record.contributions) | {name: digest for name, digest, _ in record.refused}
    found = dict[str, memoryview]()
    for name in transcript.survivors:
        if name not in digests:
            raise broken(record, f"{name} is in a secure sum, and has no contribution")
        path = folder / digests[name]
        run.download_masked(record.round, name, path, size=transcript.roster.layout.size, digest=digests[name])
        with path.open("rb") as file:
            found[name] = mapped(file)
    return found


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
