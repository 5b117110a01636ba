"""The files of saved models, recorded with their rounds for as long as they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_db.engine import early_stopping
from ferret_db.repositories import artifacts, events, experiments, rounds
from ferret_db.repositories.events import EventType
from ferret_db.repositories.experiments import spec_of
from ferret_db.tables import Artifact, Experiment

CHECKPOINT = "checkpoint"


class ArtifactFile(NamedTuple):
    """A file of a checkpoint. ``location`` is its path in the storage, ``size`` is in bytes."""

    name: str
    size: int
    digest: str
    location: str


def add(s: Session, experiment_id: str, number: int, files: Sequence[ArtifactFile]) -> None:
    """Records the checkpoint of round ``number`` (0: the base model) and drops checkpoints that need not be kept."""
    artifacts.add_all(s, [_artifact(experiment_id, number, file) for file in files])
    _tell(s, experiment_id, number, files, "checkpoint.written")
    prune(s, experiments.get(s, experiment_id))


def rebuilt(s: Session, experiment_id: str, number: int, files: Sequence[ArtifactFile]) -> None:
    """Records that the files of round ``number`` were rebuilt. Does nothing if that checkpoint was dropped.

    The model is the same, but another version of a library may have written it in other bytes.
    """
    experiments.lock(s, experiment_id)
    known = {artifact.name: artifact for artifact in artifacts.of_round(s, experiment_id, number)}
    if not known:
        return
    for file in files:
        if file.name in known:
            artifact = known.pop(file.name)
            artifact.size, artifact.digest, artifact.location = file.size, file.digest, file.location
        else:
            artifacts.add_all(s, [_artifact(experiment_id, number, file)])
    artifacts.drop(s, experiment_id, [number], list(known))
    _tell(s, experiment_id, number, files, "checkpoint.rebuilt")


def prune(s: Session, experiment: Experiment) -> None:
    """Drops the checkpoints that ``checkpoint.keep`` does not include. Garbage collection removes their files.

    The base model, the newest ``keep`` and the best ``keep_best`` are kept, and any that may turn out to be one of
    these after its evaluation. The ledger rebuilds any other round.
    """
    spec = spec_of(experiment)
    if isinstance(spec.checkpoint.keep, int):
        written = artifacts.rounds_of(s, experiment.id)
        kept = {0, *written[-spec.checkpoint.keep :], *best(s, experiment, written)[: spec.checkpoint.keep_best]}
        kept.update(round_.number for round_ in rounds.unevaluated(s, experiment))
        artifacts.drop(s, experiment.id, [number for number in written if number not in kept])


def best(s: Session, experiment: Experiment, written: Sequence[int]) -> list[int]:
    """Returns the evaluated rounds among ``written``, best first."""
    return [found.round for found in early_stopping.ranked(s, experiment) if found.round in written]


def _artifact(experiment_id: str, number: int, file: ArtifactFile) -> Artifact:
    return Artifact(experiment_id=experiment_id, round=number, kind=CHECKPOINT, **file._asdict())


def _tell(s: Session, experiment_id: str, number: int, files: Sequence[ArtifactFile], type_: EventType) -> None:
    data = {"files": len(files), "bytes": sum(file.size for file in files)}
    events.add(s, experiment_id, type_, round=number, data=data)
