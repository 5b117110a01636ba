"""The state of a worker process between tasks: database, storage, and the models of recent experiments."""

from __future__ import annotations

import time
from collections import OrderedDict
from functools import cached_property

import torch

from ferret_core.aggregation.loss_guard import LossGuard
from ferret_core.distributed.process_group import ProcessGroup
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.ledger.record import LedgerEntry
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica, replay
from ferret_core.storage import FileKind, Storage, blob_location
from ferret_core.system.device import chosen_device, place
from ferret_db import tables
from ferret_db.database import Database
from ferret_db.repositories import artifacts, experiments, ledger
from ferret_worker import replica_loader
from ferret_worker.settings import WorkerSettings
from ferret_worker.team_broadcast import TeamBroadcaster


class LoadedExperiment:
    """One experiment's replica and data on this worker. The data are loaded on first use."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica

    @cached_property
    def data(self) -> FederatedData:
        return FederatedData(self.replica.spec, self.replica.tokenizer, self.replica.context)

    @cached_property
    def guard(self) -> LossGuard:
        return LossGuard.of(self.replica, self.data)


class WorkerState:
    """The process-wide state of one worker.

    ``stopping`` is set once it was stopped and must return its work; ``unwanted`` once the running task is not needed;
    ``device_lost`` once a kernel has failed on the GPU, which leaves the whole process unable to use it (CUDA's
    "sticky" errors); ``team_lost`` once the ``team`` in which this process trains has broken.
    """

    def __init__(
        self, settings: WorkerSettings, database: Database, storage: Storage, team: ProcessGroup | None = None
    ) -> None:
        self.settings = settings
        self.database = database
        self.storage = storage
        self.stopping = False
        self.unwanted = False
        self.device_lost = False
        self.team_lost = False
        self.team = team
        self.announcer = TeamBroadcaster(team) if team is not None and team.is_first else None
        self._models: OrderedDict[str, LoadedExperiment] = OrderedDict()

    @property
    def device(self) -> torch.device:
        return chosen_device(self.settings.device)

    def require_wanted(self) -> None:
        """Raises ``experiment.conflict`` if the running task's experiment or round is over."""
        if self.unwanted:
            raise FerretError("experiment.conflict", "this work is no longer needed: its experiment or round is over")

    def keep(self, experiment_id: str, replica: Replica) -> LoadedExperiment:
        """Caches a loaded replica. The least recently used experiment is evicted."""
        place(replica.model, self.device)
        self._models[experiment_id] = kept = LoadedExperiment(replica)
        self._models.move_to_end(experiment_id)
        while len(self._models) > self.settings.model_cache_size:
            self._models.popitem(last=False)
        return kept

    def keep_base(self, experiment_id: str, replica: Replica, size: int) -> None:
        """Caches a base model with ``size`` bytes of weights, unless they will be mapped from the storage's files."""
        if not (self._on_cpu and replica_loader.in_files(self.settings, replica.spec, size)):
            self.keep(experiment_id, replica)

    def drop(self, experiment_id: str) -> None:
        """Drops a replica that may be half moved."""
        self._models.pop(experiment_id, None)

    def model_at(self, experiment_id: str, round_number: int) -> LoadedExperiment:
        """Returns the experiment's model at the end of ``round_number``, advanced by the ledger from the cached one.

        Raises ``storage.missing`` or ``storage.corrupt`` for a damaged file: see ``repair.repaired``.
        """
        kept = self._models.get(experiment_id)
        if kept is None or kept.replica.round > round_number or kept.replica.spec != self._spec(experiment_id):
            kept = self.keep(experiment_id, self.load_base(experiment_id))
        self._models.move_to_end(experiment_id)
        try:
            self._catch_up(experiment_id, kept, round_number)
        except BaseException:
            self.drop(experiment_id)
            raise
        return kept

    def load_base(self, experiment_id: str) -> Replica:
        """Loads a replica at round 0 from the stored base model, after checking all its files."""
        with self.database.read() as s:
            experiment = experiments.get(s, experiment_id)
            base = artifacts.of_round(s, experiment_id, 0)
        with self.storage.folder({file.location: file.digest for file in base}) as folder:
            replica = replica_loader.load(self.settings, experiments.spec_of(experiment), folder, self._on_cpu)
        if replica.digest != experiment.base_digest:
            raise FerretError("storage.corrupt", f"the base model of {experiment_id} does not match its digest")
        return replica

    @property
    def _on_cpu(self) -> bool:
        return self.team is None and self.device.type == "cpu"

    def _spec(self, experiment_id: str) -> ExperimentSpec:
        """Returns the current specification: an experiment may have been extended."""
        with self.database.read() as s:
            return experiments.spec_of(experiments.get(s, experiment_id))

    def _catch_up(self, experiment_id: str, kept: LoadedExperiment, round_number: int) -> None:
        replica = kept.replica
        with self.database.read() as s:
            missing = ledger.after(s, experiment_id, replica.round, limit=round_number - replica.round)
        for _ in replay(replica, map(self._entry, missing)):
            pass
        if replica.round != round_number:
            raise FerretError("ledger.broken", f"the ledger of {experiment_id} ends before round {round_number}")

    def _entry(self, row: tables.LedgerEntry) -> LedgerEntry:
        location = blob_location(FileKind.UPDATE, row.update_digest)
        return LedgerEntry.read(row.record, row.hash, self.storage.read(location, row.update_digest))


LOOK_SECONDS = 5.0


class CancellationCheck:
    """Checks the process on every call, the experiment every few seconds."""

    def __init__(self, context: WorkerState, experiment_id: str) -> None:
        self._context = context
        self._experiment_id = experiment_id
        self._looked = time.monotonic()

    def check(self) -> None:
        """Raises ``worker.stopping``, and ``experiment.conflict`` once the experiment is over."""
        self._context.require_wanted()
        if self._context.stopping:
            raise FerretError("worker.stopping", f"work on {self._experiment_id} was returned")
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        with self._context.database.read() as s:
            state = experiments.get(s, self._experiment_id).state
        self._looked = time.monotonic()
        if state.finished:
            raise FerretError("experiment.conflict", f"{self._experiment_id} is {state}: this work is no longer needed")
