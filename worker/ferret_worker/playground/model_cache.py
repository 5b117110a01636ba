"""The cache of checkpoints' models. It keeps a few in memory."""

from __future__ import annotations

import gc
from collections import OrderedDict
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import torch

from ferret_core.evaluation.streaming_generation import load_checkpoint
from ferret_core.models.load import LoadedModel
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.storage import Storage
from ferret_db.database import Database
from ferret_db.repositories import artifacts, experiments
from ferret_db.tables import Artifact


class ModelKey(NamedTuple):
    """An experiment's specification, and the files of its checkpoints by round."""

    spec: ExperimentSpec
    files: dict[int, list[Artifact]]


class ModelCache:
    """At most ``most`` models on ``device``. The least recently used one is unloaded before another loads."""

    def __init__(self, database: Database, storage: Storage, most: int, device: torch.device) -> None:
        self._database = database
        self._storage = storage
        self._most = most
        self._device = device
        self._kept: OrderedDict[tuple[str, int], LoadedModel] = OrderedDict()

    def at(self, experiment_id: str, round: int) -> LoadedModel:
        """Returns the model after ``round``, ready for questions.

        Raises ``experiment.not_found`` or ``artifact.not_found`` if it was deleted meanwhile, ``storage.missing`` or
        ``storage.corrupt`` for a damaged file, and ``model.invalid`` for a model that cannot generate.
        """
        subject = self._subject(experiment_id, round)
        key = experiment_id, round
        if key not in self._kept:
            while len(self._kept) >= self._most:
                self._kept.popitem(last=False)
            self._kept[key] = self._load(subject, round)
        self._kept.move_to_end(key)
        return self._kept[key]

    def forget(self) -> None:
        """Releases the memory of all models."""
        self._kept.clear()
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _subject(self, experiment_id: str, round: int) -> ModelKey:
        with self._database.read() as s:
            experiment = experiments.get(s, experiment_id)
            files = {number: artifacts.of_round(s, experiment_id, number) for number in {0, round}}
        if not files[round]:
            reason = "its checkpoint was deleted: choose another round"
            raise FerretError.of_field("artifact.not_found", "round", round, reason)
        return ModelKey(experiments.spec_of(experiment), files)

    def _load(self, subject: ModelKey, round: int) -> LoadedModel:
        with self._folder(subject.files[round]) as folder, self._folder(subject.files[0]) as base:
            loaded = load_checkpoint(folder, base, subject.spec.prompt.template)
        loaded.model.to(self._device)
        return loaded

    def _folder(self, files: list[Artifact]) -> AbstractContextManager[Path]:
        return self._storage.folder({file.location: file.digest for file in files})
