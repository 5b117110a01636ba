"""A participant's copy of the global model: downloaded once, then moved by the ledger's kilobytes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ferret_core.ledger.record import LedgerEntry, LedgerRecord, broken, check_link
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.experiments import Experiment
from ferret_core.protocol.resources.rounds import LedgerEntry as ListedEntry
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_sdk.http.retry import PATIENT
from ferret_sdk.http.transport import Transport, read_model
from ferret_sdk.participant.lock import in_turn
from ferret_sdk.service import base_model_weights
from ferret_sdk.service.base_model_weights import require_own_files, require_plain
from ferret_sdk.service.progress import Progress, Stage, Watcher, log_outages
from ferret_sdk.service.run import Run

if TYPE_CHECKING:
    from ferret_core.replica.replica import Replica

BYTES_PER_WEIGHT = 16
"""Bound per trained weight: an update holds a few 4-byte numbers each, such as a step and a control variate."""
UPDATE_MARGIN = 64 << 20
"""Allowance for parts that do not grow with the model: pools of seeds, names of tensors, sketches."""


class ReplicaSync:
    """Holds the replica between rounds. The base model's files stay in ``folder`` across restarts.

    ``on_record`` receives every committed round that the replica has followed, ``watcher`` the progress of downloads
    and of catching up. ``require`` may refuse the specification, and the base model's digest, before the download.
    ``base`` is the site's source of the base model's weights (:mod:`ferret_sdk.service.base_model_weights`); by default
    they come from the server.
    """

    def __init__(
        self,
        transport: Transport,
        experiment: str,
        folder: Path,
        on_record: Callable[[LedgerRecord], None],
        require: Callable[[ExperimentSpec, str | None], None] = lambda spec, base_digest: None,
        base: Path | str | None = None,
    ) -> None:
        self._transport = transport
        self._path = f"/experiments/{experiment}"
        self._folder = folder
        self._on_record = on_record
        self.watcher: Watcher = log_outages
        self._require = require
        self._base = base
        self._replica: Replica | None = None
        self._known: Run | None = None

    @contextmanager
    def at(self, task: RoundTask) -> Generator[Replica]:
        """Yields the replica at the model that ``task`` starts from.

        Raises ``ledger.broken`` if an update does not give the recorded model, ``contribution.wrong_base`` if the task
        starts from a model that is not in the ledger.
        """
        with self._after(self._known or self._run(), task.round - 1) as replica:
            if replica.digest != task.base_digest:
                reason = (
                    f"the ledger leads to {replica.digest} after round {replica.round}; asking for another assignment"
                )
                raise FerretError.of_field("contribution.wrong_base", "base_digest", task.base_digest, reason)
            yield replica

    @contextmanager
    def at_the_end(self) -> Generator[tuple[Run, Replica]]:
        """Yields the experiment, and the replica at its last model.

        Raises ``ledger.broken`` if the ledger leads to another model, and ``experiment.conflict`` before a model
        exists.
        """
        run = self._run()
        if run.experiment.digest is None:
            detail = f"{run.id} is {run.state.value} and has no model yet; run the command again in a minute"
            raise FerretError("experiment.conflict", detail)
        with self._after(run, run.experiment.round) as replica:
            if replica.digest != run.experiment.digest:
                ends = f"the ledger ends after round {replica.round} with {replica.digest}"
                raise FerretError("ledger.broken", f"{ends}, but the experiment is at {run.experiment.digest}")
            yield run, replica

    def records_to_the_end(self) -> Iterator[LedgerRecord]:
        """Yields the available records after the replica's round, or all without a replica.

        They are checked as a chain, by hashes and signatures. No update is downloaded, and no model is moved.
        """
        from ferret_core.ledger.record import SignatureChecker

        run = self._known or self._run()
        replica = self._replica
        last, head, signatures = (
            (0, "", SignatureChecker()) if replica is None else (replica.round, replica.head, replica.signatures)
        )
        for number, item in enumerate(run.ledger(last), start=last + 1):
            record = _record(run, item)
            if record.round != number:
                raise broken(record, f"it is in the place of round {number}")
            check_link(record, item.hash, head)
            signatures.check(record)
            head = record.hash
            yield record

    def forget(self) -> None:
        """Drops the copy: the next one is built from the base model."""
        self._replica = self._known = None

    def _run(self) -> Run:
        """Returns the current experiment. The parts that a round needs do not change, so it is fetched once."""
        self._known = Run(self._transport, read_model(Experiment, self._transport.get(self._path, PATIENT)))
        return self._known

    @contextmanager
    def _after(self, run: Run, last: int) -> Generator[Replica]:
        """Yields the replica after round ``last``."""
        if self._replica is None:
            self._require(run.specification(), run.experiment.base_digest)
        # Kept again only if all goes well: whatever raises may leave the weights half moved.
        replica, self._replica = self._replica or self._load(run), None
        self._catch_up(replica, run, last)
        yield replica
        self._replica = replica

    def _load(self, run: Run) -> Replica:
        """Loads the base model on the training device. A site's participants use its files one at a time."""
        from ferret_core.system.device import chosen_device, place

        def wait() -> None:
            self.watcher(Progress(Stage.TURN))

        where = chosen_device()
        with in_turn(self._folder.with_suffix(".lock"), wait):
            replica = load_base(run, self._folder, self._downloading, self._weights_of_site(run))
        place(replica.model, where)
        return replica

    def _catch_up(self, replica: Replica, run: Run, last: int) -> None:
        from ferret_core.models.shapes import count
        from ferret_core.replica.replica import replay

        largest = UPDATE_MARGIN + BYTES_PER_WEIGHT * count(replica.shapes)
        for record in replay(replica, entries(run, replica.round, last, largest)):
            self._on_record(record)
            self.watcher(Progress(Stage.CATCH_UP, record.round, record.round, last))

    def _weights_of_site(self, run: Run) -> Path | None:
        if self._base is None:
            return None
        return base_model_weights.of_site(self._base, run.specification().model, self._transport.traffic)

    def _downloading(self, done: int, total: int) -> None:
        self.watcher(Progress(Stage.DOWNLOAD, 0, done, total))


def entries(run: Run, after: int, last: int, largest: int | None = None) -> Iterator[LedgerEntry]:
    """Yields the ledger's entries from round ``after`` + 1 to ``last``. Each update is downloaded when it is reached.

    Nothing after ``last`` is requested. A record of another experiment is ``ledger.broken``, and an update with an
    announced size above ``largest`` bytes ``server.unexpected``.
    """
    if after >= last:
        return
    for item in run.ledger(after=after):
        record = _record(run, item)
        if record.round > last:
            return
        if largest is not None and item.update_size > largest:
            message = f"is more than an update of this model can have ({largest} bytes)"
            raise FerretError.of_field("server.unexpected", "update_size", item.update_size, message)
        yield LedgerEntry(record, item.hash, run.update(record.round, item.update_size))
        if record.round == last:
            return


def _record(run: Run, item: ListedEntry) -> LedgerRecord:
    record = read_model(LedgerRecord, item.record)
    if record.experiment != run.id:
        raise broken(record, f"it belongs to another experiment, {record.experiment}")
    return record


def load_base(
    run: Run, folder: Path, on_bytes: Callable[[int, int], None] | None = None, own: Path | None = None
) -> Replica:
    """Downloads the missing files of round 0's checkpoint to ``folder``, and loads it.

    The weights in the folder ``own``, if given, are used in place and not downloaded. ``model.invalid`` means that they
    are not the base model's. The specification's model and datasets are the server's and are not looked up here. Raises
    ``server.unexpected`` for an invalid specification, and for files that cannot belong to a base model.
    """
    from ferret_core.replica.replica import Replica

    spec = run.specification()
    files = run.checkpoint(0)
    require_plain(files)
    folder.mkdir(parents=True, exist_ok=True)
    if own is not None:
        base_model_weights.require_announced(own, files)
        files = [file for file in files if not base_model_weights.holds_weights(file.name)]
    run.fetch(files, folder, on_bytes)
    require_own_files(folder)
    with nullcontext(folder) if own is None else base_model_weights.joined(own, folder) as whole:
        replica = Replica.load(spec, whole)
    if own is not None and replica.digest != run.experiment.base_digest:
        raise base_model_weights.other_model(own, replica.digest, run.experiment.base_digest or "none")
    if replica.digest != run.experiment.base_digest:
        detail = f"the base model has digest {replica.digest}, announced was {run.experiment.base_digest}"
        raise FerretError("storage.corrupt", f"{detail}; delete {folder} and run the command again")
    return replica
