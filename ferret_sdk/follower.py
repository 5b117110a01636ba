"""A participant's copy of the global model: downloaded once, then moved by the ledger's kilobytes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ferret_core.ledger import LedgerEntry, LedgerRecord
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_sdk.retry import PATIENT
from ferret_sdk.run import Run
from ferret_sdk.schemas import Experiment
from ferret_sdk.transport import Transport

if TYPE_CHECKING:
    from ferret_core.replica import Replica


class Follower:
    """Holds the replica between rounds; the base model's files stay in ``folder``, which survives restarts.

    ``on_record`` is told of every committed round that the replica has followed.
    """

    def __init__(
        self, transport: Transport, experiment: str, folder: Path, on_record: Callable[[LedgerRecord], None]
    ) -> None:
        self._transport = transport
        self._path = f"/experiments/{experiment}"
        self._folder = folder
        self._on_record = on_record
        self._replica: Replica | None = None

    @contextmanager
    def at(self, task: RoundTask) -> Generator[Replica]:
        """The replica at the model that ``task`` starts from, for the length of a ``with`` block.

        Raises ``ledger.broken`` if an update does not give the recorded model, ``contribution.wrong_base`` if the
        task starts from a model that the ledger does not know.
        """
        run = Run(self._transport, Experiment.model_validate(self._transport.get(self._path, PATIENT)))
        # Kept again only if all goes well: whatever raises may leave the weights half moved.
        replica, self._replica = self._replica or load_base(run, self._folder), None
        self._catch_up(replica, run, task)
        yield replica
        self._replica = replica

    def forget(self) -> None:
        """Drops the copy: the next is built from the base model."""
        self._replica = None

    def _catch_up(self, replica: Replica, run: Run, task: RoundTask) -> None:
        from ferret_core.follow import follow

        for record in follow(replica, entries(run, replica.round, task.round - 1)):
            self._on_record(record)
        if replica.digest != task.base_digest:
            reason = f"the ledger leads to {replica.digest} after round {replica.round}; asking for another assignment"
            raise FerretError.of_field("contribution.wrong_base", "base_digest", task.base_digest, reason)


def entries(run: Run, after: int, last: int) -> Iterator[LedgerEntry]:
    """The ledger's entries from round ``after`` + 1 to ``last``; each update is downloaded when its turn comes."""
    for item in run.ledger(after=after):
        record = LedgerRecord.model_validate(item.record)
        if record.round > last:
            return
        yield LedgerEntry(record, item.hash, run.update(record.round))


def load_base(run: Run, folder: Path) -> Replica:
    """Downloads the checkpoint of round 0 into ``folder`` as far as it is missing, and loads it."""
    from ferret_core.replica import Replica

    folder.mkdir(parents=True, exist_ok=True)
    run.fetch(run.checkpoint(0), folder)
    replica = Replica.load(ExperimentSpec.model_validate(run.experiment.spec), folder)
    if replica.digest != run.experiment.base_digest:
        detail = f"the base model has digest {replica.digest}, announced was {run.experiment.base_digest}"
        raise FerretError("storage.corrupt", f"{detail}; delete {folder} and run the command again")
    return replica
