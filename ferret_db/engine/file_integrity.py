"""Comparison of stored files with the digests in the database, and of contribution rows with files and ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_core.ledger.record import LedgerRecord, contributions_digest
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import RoundState
from ferret_core.protocol.task_names import TaskName
from ferret_core.protocol.wire import Contribution as Sent
from ferret_core.storage import FileKind, Storage, blob_location
from ferret_db.repositories import contributions, experiments, ledger, outbox, rounds, task_runs
from ferret_db.repositories.stored_files import StoredFileRef
from ferret_db.tables import Contribution

DAMAGE = frozenset({"storage.corrupt", "storage.missing"})
"""Error codes of a missing or changed file."""


REPAIR_SECONDS = 60.0


def call_for_repair(s: Session, experiment_id: str) -> None:
    """Has a worker check the experiment's files and rebuild damaged ones, unless this was requested a minute ago.

    A repair that was given up starts over: its cause may be gone.
    """
    run = task_runs.get(s, TaskName.REPAIR, experiment_id)
    if run is not None and run.given_up_at is not None:
        task_runs.drop(s, run)
    if not outbox.waits(s, TaskName.REPAIR, experiment_id, REPAIR_SECONDS):
        outbox.add(s, TaskName.REPAIR, experiment_id)


def damaged(storage: Storage, files: Iterable[StoredFileRef]) -> list[StoredFileRef]:
    """Returns the files that are missing or do not match their digest. A file with several references is read once."""
    known: dict[str, bool] = {}
    found: list[StoredFileRef] = []
    for file in files:
        if file.location not in known:
            known[file.location] = is_intact(storage, file.location, file.digest)
        if not known[file.location]:
            found.append(file)
    return found


def is_intact(storage: Storage, location: str, digest: str) -> bool:
    """Returns True if the file exists and has that digest."""
    try:
        storage.verify(location, digest)
    except FerretError as error:
        if error.code not in DAMAGE:
            raise
        return False
    return True


class Inconsistency(NamedTuple):
    """A mismatch between a row and its file or ledger record. ``participant`` is empty for a whole round."""

    experiment_id: str
    round: int
    participant: str
    reason: str


def altered(s: Session, storage: Storage, experiment_id: str | None = None) -> Iterator[Inconsistency]:
    """Yields every contribution row that contradicts the file under its digest or the ledger.

    A missing or damaged file contradicts nothing: :func:`ferret_db.engine.file_integrity.damaged` reports it.
    """
    for experiment in [experiment_id] if experiment_id else experiments.ids(s):
        summed = experiments.spec_of(experiments.get(s, experiment)).summed
        for row in contributions.of_experiment(s, experiment):
            yield from (
                Inconsistency(experiment, row.round, row.participant, reason)
                for reason in _against_file(row, storage, summed=summed)
            )
        yield from _against_rounds(s, experiment)


def _against_file(row: Contribution, storage: Storage, *, summed: bool) -> Iterator[str]:
    """Yields the contradictions of a row; a vector for a sum has no metadata."""
    blob = _stored(storage, row.digest)
    if blob is None:
        return
    stated = {"size": len(blob)}
    if not summed:
        sent = Sent.decode(blob).meta
        stated |= {"experiment": sent.experiment, "round": sent.round, "participant": sent.participant}
    kept = {"size": row.size, "experiment": row.experiment_id, "round": row.round, "participant": row.participant}
    for name, value in stated.items():
        if value != kept[name]:
            yield f"its {name} is {kept[name]!r}, and its file says {value!r}"


def _against_rounds(s: Session, experiment_id: str) -> Iterator[Inconsistency]:
    for round_ in rounds.frozen(s, experiment_id):
        rows = {row.participant: row.digest for row in contributions.of_round(s, round_.id)}
        if round_.state == RoundState.COMMITTED:
            record = LedgerRecord.model_validate(ledger.get(s, experiment_id, round_.number).record)
            yield from _differences(experiment_id, round_.number, rows, _taken(record))
        elif contributions_digest(list(rows.items())) != round_.contributions_digest:
            yield Inconsistency(experiment_id, round_.number, "", "the accepted set differs from the frozen one")


def _stored(storage: Storage, digest: str) -> memoryview | None:
    try:
        return storage.view(blob_location(FileKind.CONTRIBUTION, digest), digest)
    except FerretError as error:
        if error.code not in DAMAGE:
            raise
        return None


def _taken(record: LedgerRecord) -> dict[str, str]:
    """Returns the digests of the accepted contributions by participant, both aggregated and left out."""
    return dict(record.contributions) | {participant: digest for participant, digest, _ in record.refused}


def _differences(
    experiment_id: str, number: int, rows: Mapping[str, str], recorded: Mapping[str, str]
) -> Iterator[Inconsistency]:
    for participant in sorted({*rows, *recorded}):
        kept, stated = rows.get(participant), recorded.get(participant)
        if kept != stated:
            reason = f"its digest is {kept or 'in no row'}, and the ledger says {stated or 'that it has none'}"
            yield Inconsistency(experiment_id, number, participant, reason)
