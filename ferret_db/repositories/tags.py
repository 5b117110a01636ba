"""The tags of experiments."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, insert, select
from sqlalchemy.orm import Session

from ferret_core.protocol.tags_and_notes import tag_key
from ferret_db.tables import Experiment, ExperimentTag


def of(s: Session, experiment_ids: Sequence[str]) -> dict[str, list[str]]:
    """Returns the tags of each of the experiments, in the order of their keys."""
    found: dict[str, list[str]] = {experiment_id: [] for experiment_id in experiment_ids}
    query = select(ExperimentTag.experiment_id, ExperimentTag.tag)
    query = query.where(ExperimentTag.experiment_id.in_(experiment_ids)).order_by(ExperimentTag.key)
    for experiment_id, tag in s.execute(query):
        found[experiment_id].append(tag)
    return found


def replace(s: Session, experiment_id: str, tags: Sequence[str]) -> None:
    """Sets the tags of the experiment, which the caller has locked. Their keys must be unique."""
    s.execute(delete(ExperimentTag).where(ExperimentTag.experiment_id == experiment_id))
    if tags:
        rows = [{"experiment_id": experiment_id, "key": tag_key(tag), "tag": tag} for tag in tags]
        s.execute(insert(ExperimentTag), rows)


def tagged(tag: str) -> ColumnElement[bool]:
    """Returns the condition that an experiment has the tag."""
    return Experiment.id.in_(select(ExperimentTag.experiment_id).where(ExperimentTag.key == tag_key(tag)))
