"""The files of a written-out model, noted beside the round they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_db.repositories import artifacts, events
from ferret_db.tables import Artifact

CHECKPOINT = "checkpoint"


class ArtifactFile(NamedTuple):
    """A file of a checkpoint; ``location`` is its path in the storage, ``size`` in bytes."""

    name: str
    size: int
    digest: str
    location: str


def add(s: Session, experiment_id: str, number: int, files: Sequence[ArtifactFile]) -> None:
    """Notes the checkpoint of round ``number``; 0 is the base model."""
    artifacts.add_all(
        s, [Artifact(experiment_id=experiment_id, round=number, kind=CHECKPOINT, **file._asdict()) for file in files]
    )
    data = {"files": len(files), "bytes": sum(file.size for file in files)}
    events.add(s, experiment_id, "checkpoint.written", round=number, data=data)
