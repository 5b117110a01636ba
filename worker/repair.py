"""Rebuilds an experiment's rotten and missing files from what is left of it, whoever does it and however often.

- the base model: from the specification's model, if that still has the recorded digest;
- an update: from the round's contributions, folded again;
- a checkpoint: from the base model and the ledger;
- what a simulated client sent and kept: by doing its part again.

All in one walk along the ledger, and no file is taken for rebuilt whose digest is not the recorded one. A contribution
of a real participant cannot be had again; once its round is committed, only the repair of that round's update needs it.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ferret_core.algorithms._base import Client
from ferret_core.failpoints import failpoint
from ferret_core.ledger import LedgerRecord, broken
from ferret_core.participant import contribute
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.states import ParticipantKind
from ferret_core.protocol.wire import Arrays, Contribution, decode, encode
from ferret_core.replica import Replica
from ferret_core.storage import blob_location
from ferret_db import tables
from ferret_db.engine import checkpoints as checkpoint_engine
from ferret_db.engine.verify import DAMAGE, damaged, is_intact
from ferret_db.repositories import assignments, contributions, experiments, ledger, references
from ferret_db.repositories.references import FileKind, Reference
from worker import checkpoints

if TYPE_CHECKING:
    from worker.context import Context

logger = logging.getLogger(__name__)

R = TypeVar("R")


def repair(context: Context, experiment_id: str) -> None:
    """As a task: checks all files of the experiment and rebuilds the damaged ones."""
    with context.database.read() as s:
        files = list(references.of_all(s, experiment_id))
    rebuild(context, experiment_id, damaged(context.storage, files))


def mended(context: Context, experiment_id: str, work: Callable[[], R]) -> R:
    """``work()``; if a stored file that it needs is damaged, again after a repair of all that the experiment needs."""
    try:
        return work()
    except FerretError as error:
        if error.code not in DAMAGE:
            raise
        logger.warning("%s: %s; rebuilding it", experiment_id, error.detail)
        context.drop(experiment_id)  # it may have been left half moved
        if not rebuild(context, experiment_id, _damaged_and_needed(context, experiment_id)):
            raise
    return work()


def rebuild(context: Context, experiment_id: str, files: Sequence[Reference]) -> bool:
    """Rebuilds the experiment's damaged ``files`` as far as possible; whether there were any.

    Raises ``storage.corrupt`` or ``ledger.broken`` where the model itself cannot be had again. What only a real
    participant could send again is told in the log.
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
    """``python -m worker.repair ID …``: for the command line, which does not import the workers' code."""
    from ferret_core.storage import open_storage
    from ferret_db import process
    from ferret_db.database import Database
    from worker.context import Context
    from worker.settings import WorkerSettings

    parser = argparse.ArgumentParser(prog="python -m worker.repair", description="Rebuild damaged files.")
    parser.add_argument("experiment", nargs="+", help="id of an experiment")
    ids: list[str] = parser.parse_args(arguments).experiment

    def run() -> None:
        settings = WorkerSettings.read()
        process.prepare(settings)
        context = Context(settings, Database(settings.database_url), open_storage(settings.storage_url))
        for experiment_id in ids:
            try:
                repair(context, experiment_id)
            except FerretError as error:
                logger.error("%s cannot be rebuilt: %s", experiment_id, error.detail)

    return process.run(run)


class _Walk:
    """A replica on its way along the ledger, with what is to be rebuilt as it comes by."""

    def __init__(self, context: Context, experiment_id: str, files: Sequence[Reference]) -> None:
        self._context = context
        with context.database.read() as s:
            self._experiment = experiments.get(s, experiment_id)
            entries = ledger.after(s, experiment_id, 0, limit=self._experiment.round)
            self._sent = contributions.of_experiment(s, experiment_id)
        self._records = {entry.round: LedgerRecord.model_validate(entry.record) for entry in entries}
        self._checkpoints = {file.round for file in files if file.kind == FileKind.CHECKPOINT}
        self._updates = {file.round for file in files if file.kind == FileKind.UPDATE}
        self._again = self._to_do_again({file.digest for file in files})

    def go(self) -> None:
        """Rebuilds everything, first what later things are made of."""
        self._bench = self._context.keep(self._experiment.id, self._base())
        for number in range(1, 1 + max(self._checkpoints | self._updates | set(self._again), default=0)):
            for one in self._again.get(number, []):
                self._do_again(one)
            if record := self._records.get(number):
                self._advance(record)
            if number in self._checkpoints:
                self._write(number)

    def _to_do_again(self, lost: set[str]) -> dict[int, list[tables.Contribution]]:
        """By round, the parts of simulated clients that gave a lost digest or what it takes to make one again."""
        for number in self._updates & set(self._records):
            sent = (digest for _, digest in self._records[number].contributions)
            lost |= {digest for digest in sent if not self._has(FileKind.CONTRIBUTION, digest)}
        again: dict[int, list[tables.Contribution]] = {}
        for one in reversed(self._sent):
            if lost & {one.digest, one.memory_digest}:
                again.setdefault(one.round, []).append(one)
                lost |= {digest for digest in self._memories_before(one) if not self._has(FileKind.MEMORY, digest)}
        return again

    def _memories_before(self, one: tables.Contribution) -> list[str]:
        """The digest of what the client was given for its part, if it was given anything."""
        with self._context.database.read() as s:
            digest = contributions.memory_of(s, one.experiment_id, one.participant, one.round)
        return [digest] if digest else []

    def _has(self, kind: FileKind, digest: str) -> bool:
        return is_intact(self._context.storage, blob_location(kind, digest), digest)

    def _base(self) -> Replica:
        if 0 not in self._checkpoints:
            return self._context.load_base(self._experiment.id)
        spec = experiments.spec_of(self._experiment)
        try:
            replica, files = checkpoints.store_base(self._context.storage, spec, self._experiment.id)
        except FerretError as error:
            raise self._lost_base(error.detail) from error
        if replica.digest != self._experiment.base_digest:
            raise self._lost_base(f"{spec.model.source} is another model now")
        self._note(0, files)
        return replica

    def _lost_base(self, reason: str) -> FerretError:
        return FerretError(
            "storage.corrupt",
            f"the base model of {self._experiment.id} is damaged and cannot be had again: {reason}; put the model with "
            f"the digest {self._experiment.base_digest} back there, or restore a backup",
        )

    def _do_again(self, one: tables.Contribution) -> None:
        """A simulated client's part in a round; the log says why if it cannot be had."""
        with self._context.database.read() as s:
            assignment = assignments.get(s, one.assignment_id)
        what = f"what {one.participant} sent in round {one.round} of {one.experiment_id}"
        if assignment.kind == ParticipantKind.EDGE:
            logger.error("%s is damaged, and only a backup has it", what)
            return
        task = RoundTask.model_validate(assignment.task)
        client = Client(task, self._bench.data.shard(task.participant), recall(self._context, task))
        contribution, memory = contribute(self._bench.replica, client)
        made = {FileKind.CONTRIBUTION: contribution.encode()}
        if memory:
            made[FileKind.MEMORY] = encode(memory, {})
        if {digest_bytes(blob) for blob in made.values()} != {one.digest, one.memory_digest} - {None}:
            logger.error("%s is damaged, and training on this machine gives other bits", what)
            return
        for kind, blob in made.items():
            self._put(blob, kind)

    def _advance(self, record: LedgerRecord) -> None:
        """Moves the replica through a committed round, by its update or by what that was made of."""
        replica, storage = self._bench.replica, self._context.storage
        if record.round not in self._updates:
            replica.advance(record, storage.read(blob_location(FileKind.UPDATE, record.update), record.update))
            return
        sent = (
            (digest, Contribution.decode(storage.read(blob_location(FileKind.CONTRIBUTION, digest), digest)))
            for _, digest in record.contributions
        )
        _, update = replica.fold(record.experiment, sent, record.previous)
        if digest_bytes(update) != record.update:
            raise broken(record, "its update is damaged, and folding its contributions here gives another")
        self._put(update, FileKind.UPDATE)

    def _write(self, number: int) -> None:
        self._note(number, checkpoints.store(self._context.storage, self._bench.replica, self._experiment.id))

    def _put(self, blob: bytes, kind: FileKind) -> None:
        stored = self._context.storage.put_bytes(blob, kind)
        failpoint("repair.rebuilt")
        logger.warning("rebuilt %s of %s", stored.location, self._experiment.id)

    def _note(self, number: int, files: Sequence[checkpoint_engine.ArtifactFile]) -> None:
        failpoint("repair.rebuilt")
        with self._context.database.begin() as s:
            checkpoint_engine.rebuilt(s, self._experiment.id, number, files)
        logger.warning("rebuilt the checkpoint of round %d of %s", number, self._experiment.id)


def recall(context: Context, task: RoundTask) -> Arrays:
    """What the simulated client kept from the last of its rounds that was committed before the task's."""
    with context.database.read() as s:
        digest = contributions.memory_of(s, task.experiment, task.participant, task.round)
    if digest is None:
        return {}
    return decode(context.storage.read(blob_location(FileKind.MEMORY, digest), digest))[0]


def _damaged_and_needed(context: Context, experiment_id: str) -> list[Reference]:
    with context.database.read() as s:
        needed = [file for file in references.of_all(s, experiment_id) if file.needed]
    return damaged(context.storage, needed)


if __name__ == "__main__":
    sys.exit(main())
