"""Rebuilds an experiment's damaged and missing files from the remaining ones, on any worker, any number of times.

- the base model: from the specification's model, if that still has the recorded digest;
- an update: from the round's contributions, aggregated again;
- a checkpoint: from the base model and the ledger;
- files of a simulated client: by repeating its part.

All happens in one walk along the ledger, and a file counts as rebuilt only if its digest is the recorded one. A
contribution of a real participant cannot be made again; once its round is committed, only a repair of that update needs
it.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ferret_core.aggregation.masked_sum import sum_of
from ferret_core.aggregation.noised_sum import noised_mean
from ferret_core.algorithms.base import Client
from ferret_core.client.local_round import contribute
from ferret_core.client.state import encode_state
from ferret_core.contribution import SealedContribution
from ferret_core.ledger.record import LedgerEntry, LedgerRecord, broken
from ferret_core.protocol.buffers import Pieces
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.states import ParticipantKind
from ferret_core.replica.replica import Contributions, Replica, replay
from ferret_core.secure.transcript import Transcript
from ferret_core.storage import FileKind, blob_location
from ferret_core.system.failpoints import failpoint
from ferret_db import tables
from ferret_db.engine import checkpoints as checkpoint_engine
from ferret_db.engine.file_integrity import DAMAGE, damaged, is_intact
from ferret_db.repositories import assignments, contributions, experiments, ledger, rounds, secure_sums, stored_files
from ferret_db.repositories.stored_files import StoredFileRef
from ferret_worker.storage import FrozenContributions, client_state, store_base, store_checkpoint, view_contributions
from ferret_worker.worker_state import WorkerState

logger = logging.getLogger(__name__)

R = TypeVar("R")


def repair(context: WorkerState, experiment_id: str) -> None:
    """Checks all files of the experiment and rebuilds the damaged ones, as a task."""
    with context.database.read() as s:
        files = list(stored_files.of_all(s, experiment_id))
    rebuild(context, experiment_id, damaged(context.storage, files))


def repaired(context: WorkerState, experiment_id: str, work: Callable[[], R]) -> R:
    """``work()``; if a stored file that it needs is damaged, again after a repair of all that the experiment needs.

    Files that are lost during the first repair are rebuilt by a second one.
    """
    for last in (False, True):
        try:
            return work()
        except FerretError as error:
            if error.code not in DAMAGE:
                raise
            logger.warning("%s: %s; rebuilding it", experiment_id, error.detail)
            context.drop(experiment_id)  # it may have been left half moved
            if not _rebuilt(context, experiment_id, last):
                raise
    return work()


def _rebuilt(context: WorkerState, experiment_id: str, last: bool) -> bool:
    """Returns whether files were damaged; only the ``last`` repair raises on damage found meanwhile."""
    try:
        return rebuild(context, experiment_id, _damaged_and_needed(context, experiment_id))
    except FerretError as error:
        if last or error.code not in DAMAGE:
            raise
        logger.warning("%s: %s, during the repair; it is repeated", experiment_id, error.detail)
        return True


def rebuild(context: WorkerState, experiment_id: str, files: Sequence[StoredFileRef]) -> bool:
    """Rebuilds the experiment's damaged ``files`` as far as possible; whether there were any.

    Raises ``storage.corrupt`` or ``ledger.broken`` where the model itself cannot be restored. Files that only a real
    participant could send again are logged.
    """
    if not files:
        return False
    context.drop(experiment_id)
    try:
        _Walk(context, experiment_id, files).go()
    except BaseException:
        context.drop(experiment_id)
        raise
    return True


def main(arguments: list[str] | None = None) -> int:
    """Runs ``python -m ferret_worker.repair ID …`` for the command line, which does not import the workers' code."""
    from ferret_db import bootstrap
    from ferret_db.database import Database
    from ferret_worker.settings import WorkerSettings

    parser = argparse.ArgumentParser(prog="python -m ferret_worker.repair", description="Rebuild damaged files.")
    parser.add_argument("experiment", nargs="+", help="id of an experiment")
    ids: list[str] = parser.parse_args(arguments).experiment

    def run() -> None:
        settings = WorkerSettings.read()
        bootstrap.prepare(settings)
        context = WorkerState(settings, Database(settings.database_url), settings.open_storage())
        for experiment_id in ids:
            try:
                repair(context, experiment_id)
            except FerretError as error:
                logger.error("%s cannot be rebuilt: %s", experiment_id, error.detail)

    return bootstrap.run(run)


class _Walk:
    """A replica that walks along the ledger, with the files to rebuild on the way."""

    def __init__(self, context: WorkerState, experiment_id: str, files: Sequence[StoredFileRef]) -> None:
        self._context = context
        with context.database.read() as s:
            self._experiment = experiments.get(s, experiment_id)
            rows = ledger.after(s, experiment_id, 0, limit=self._experiment.round)
            self._sent = contributions.of_experiment(s, experiment_id)
        self._rows = {row.round: row for row in rows}
        self._checkpoints = {file.round for file in files if file.kind == FileKind.CHECKPOINT}
        self._updates = {file.round for file in files if file.kind == FileKind.UPDATE}
        self._again = self._to_do_again({file.digest for file in files})

    def go(self) -> None:
        """Rebuilds everything, dependencies first."""
        self._kept = self._context.keep(self._experiment.id, self._base())
        for record in replay(self._kept.replica, self._entries()):
            if record.round in self._checkpoints:
                self._note(record.round, self._written())

    def _entries(self) -> Iterator[LedgerEntry]:
        """Walks the ledger up to the last damaged file. Files of clients in a round are rebuilt before its update."""
        for number in range(1, 1 + max(self._checkpoints | self._updates | set(self._again), default=0)):
            for sent in self._again.get(number, []):
                self._do_again(sent)
            if row := self._rows.get(number):
                update = self._aggregated(row) if number in self._updates else self._read(row)
                yield LedgerEntry.read(row.record, row.hash, update)

    def _to_do_again(self, lost: set[str]) -> dict[int, list[tables.Contribution]]:
        """Returns, by round, the parts of simulated clients with a lost digest or with a file needed to rebuild one."""
        rebuilt = self._updates & set(self._rows)
        if experiments.spec_of(self._experiment).privacy.central:
            rebuilt = set()  # from noised sums
        for number in rebuilt:
            accepted = LedgerRecord.model_validate(self._rows[number].record).contributions
            lost |= {digest for _, digest in accepted if not self._has(FileKind.CONTRIBUTION, digest)}
        again: dict[int, list[tables.Contribution]] = {}
        for sent in reversed(self._sent):
            if lost & {sent.digest, sent.memory_digest}:
                again.setdefault(sent.round, []).append(sent)
                lost |= {digest for digest in self._memories_before(sent) if not self._has(FileKind.MEMORY, digest)}
        return again

    def _memories_before(self, sent: tables.Contribution) -> list[str]:
        """Returns the digest of the client's input state for its part, if it had one."""
        with self._context.database.read() as s:
            digest = contributions.memory_of(s, sent.experiment_id, sent.participant, sent.round)
        return [digest] if digest else []

    def _has(self, kind: FileKind, digest: str) -> bool:
        return is_intact(self._context.storage, blob_location(kind, digest), digest)

    def _base(self) -> Replica:
        if 0 not in self._checkpoints:
            return self._context.load_base(self._experiment.id)
        spec = experiments.spec_of(self._experiment)
        try:
            replica, files = store_base(self._context.storage, spec, self._experiment.id)
        except FerretError as error:
            raise self._lost_base(error.detail) from error
        if replica.digest != self._experiment.base_digest:
            raise self._lost_base(f"{spec.model.source} is another model now")
        self._note(0, files)
        return replica

    def _lost_base(self, reason: str) -> FerretError:
        return FerretError(
            "storage.corrupt",
            f"the base model of {self._experiment.id} is damaged and cannot be restored: {reason}; put the model with "
            f"the digest {self._experiment.base_digest} back there, or restore a backup",
        )

    def _do_again(self, sent: tables.Contribution) -> None:
        """Repeats a simulated client's part in a round; logs the reason if that fails."""
        with self._context.database.read() as s:
            assignment = assignments.get(s, sent.assignment_id)
        what = f"what {sent.participant} sent in round {sent.round} of {sent.experiment_id}"
        if assignment.kind == ParticipantKind.EDGE:
            logger.error("%s is damaged, and only a backup has it", what)
            return
        task = RoundTask.model_validate(assignment.task)
        client = Client(task, self._kept.data.shard(task.participant), client_state(self._context, task).load())
        part = contribute(self._kept.replica, client)
        memory = encode_state(part.memory)
        if (part.sealed.digest, memory and digest_bytes(memory)) != (sent.digest, sent.memory_digest):
            logger.error("%s is damaged, and training on this machine gives other bits", what)
            return
        self._put(part.sealed.pieces, FileKind.CONTRIBUTION, part.sealed.digest)
        if memory is not None:
            self._put((memory,), FileKind.MEMORY, digest_bytes(memory))

    def _read(self, row: tables.LedgerEntry) -> bytes:
        return self._context.storage.read(blob_location(FileKind.UPDATE, row.update_digest), row.update_digest)

    def _aggregated(self, row: tables.LedgerEntry) -> bytes:
        record = LedgerRecord.model_validate(row.record)
        replica = self._kept.replica
        update = replica.aggregate(self._received(record), record.factors)
        if digest_bytes(update) != row.update_digest:
            raise broken(record, "its update is damaged, and aggregating its contributions here gives another")
        self._put((update,), FileKind.UPDATE, row.update_digest)
        return update

    def _received(self, record: LedgerRecord) -> Contributions:
        digests = dict(record.contributions)
        if not record.groups:
            return FrozenContributions(self._context.storage, digests)
        if self._kept.replica.spec.privacy.central:
            return [self._noised(record)]
        with self._context.database.read() as s:
            found = secure_sums.transcripts(s, record.experiment, record.round)
        counted = {group.transcript for group in record.groups if group.refused is None}
        transcripts = [one for one in map(Transcript.model_validate, found) if one.digest in counted]
        masked = view_contributions(self._context.storage, digests)
        return [sum_of(self._kept.replica, record.experiment, one, masked).sealed for one in transcripts]

    def _noised(self, record: LedgerRecord) -> SealedContribution:
        """Returns the mean with central noise, without its contributions."""
        digests = dict(record.contributions)
        sent = next(row for row in self._sent if digests.get(row.participant) == row.digest)
        with self._context.database.read() as s:
            task = RoundTask.model_validate(assignments.get(s, sent.assignment_id).task)
            attempt, noised = rounds.get(s, sent.round_id).attempt, rounds.noised_sum(s, sent.round_id)
        if noised is None:
            raise broken(record, "its update is damaged, and its noised sum is missing")
        return noised_mean(self._kept.replica, task, attempt, noised, digests).sealed

    def _written(self) -> Sequence[checkpoint_engine.ArtifactFile]:
        return store_checkpoint(self._context.storage, self._kept.replica, self._experiment.id)

    def _put(self, pieces: Pieces, kind: FileKind, digest: str) -> None:
        stored = self._context.storage.put_pieces(pieces, kind, digest)
        failpoint("repair.rebuilt")
        logger.warning("rebuilt %s of %s", stored.location, self._experiment.id)

    def _note(self, number: int, files: Sequence[checkpoint_engine.ArtifactFile]) -> None:
        failpoint("repair.rebuilt")
        with self._context.database.begin() as s:
            checkpoint_engine.rebuilt(s, self._experiment.id, number, files)
        logger.warning("rebuilt the checkpoint of round %d of %s", number, self._experiment.id)


def _damaged_and_needed(context: WorkerState, experiment_id: str) -> list[StoredFileRef]:
    with context.database.read() as s:
        needed = [file for file in stored_files.of_all(s, experiment_id) if file.needed]
    return damaged(context.storage, needed)


if __name__ == "__main__":
    sys.exit(main())
