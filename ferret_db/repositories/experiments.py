"""Experiments: created, read, locked, tagged, deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, func, insert, select, update
from sqlalchemy import delete as deleted
from sqlalchemy.orm import Session, defer

from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.tags_and_notes import LEAST_PRIORITY, tag_key
from ferret_db.tables import FIRST_PROJECT, Assignment, Base, Experiment, ExperimentTag

_FRESH = {"populate_existing": True}
_UNFINISHED = [state for state in ExperimentState if not state.finished]
_FREE = {"name", "seed"}
"""Fields that may differ within a seed group."""
_GROUP_LENGTH = 32

LARGE = (defer(Experiment.spec), defer(Experiment.shapes), defer(Experiment.notes))
"""Defers an experiment's large columns."""


def add(
    s: Session,
    spec: ExperimentSpec,
    *,
    project: str = FIRST_PROJECT,
    priority: int = LEAST_PRIORITY,
    cloned_from: str | None = None,
    idempotency_key: str | None = None,
    idempotency_digest: str | None = None,
) -> Experiment:
    """Creates a queued experiment."""
    document = spec.model_dump(mode="json")
    experiment = Experiment(
        project=project,
        priority=priority,
        name=spec.name,
        spec=document,
        seed_group=seed_group(project, document),
        algorithm=spec.algorithm.name,
        dataset=spec.dataset.name,
        rounds=spec.rounds,
        participants=spec.participants.simulated + spec.participants.edge,
        edge_participants=spec.participants.edge,
        cloned_from=cloned_from,
        idempotency_key=idempotency_key,
        idempotency_digest=idempotency_digest,
    )
    s.add(experiment)
    s.flush()
    return experiment


def get(s: Session, experiment_id: str) -> Experiment:
    """Returns the experiment, or raises ``experiment.not_found``."""
    found = s.get(Experiment, experiment_id, populate_existing=True)
    if found is None:
        raise unknown(experiment_id)
    return found


def spec_of(experiment: Experiment) -> ExperimentSpec:
    """Returns the resolved specification."""
    return ExperimentSpec.model_validate(experiment.spec)


def seed_group(project: str, spec: Mapping[str, Any]) -> str:
    """Returns a key that is equal for the project's experiments that differ only in name and seed."""
    rest = {name: value for name, value in spec.items() if name not in _FREE}
    return digest_json([project, rest])[:_GROUP_LENGTH]


def current_round(experiment: Experiment) -> int | None:
    """Returns the number of the current or next round, or None if no further round follows."""
    over = experiment.state.finished or experiment.round >= experiment.rounds
    return None if over else experiment.round + 1


def lock(s: Session, experiment_id: str) -> Experiment:
    """Locks the experiment until the transaction ends: transitions of one experiment run one after another.

    ``key_share`` lets other transactions insert rows that refer to it. SQLite locks the whole database anyway.
    """
    found = s.scalars(
        select(Experiment).where(Experiment.id == experiment_id).with_for_update(key_share=True),
        execution_options=_FRESH,
    ).one_or_none()
    if found is None:
        raise unknown(experiment_id)
    return found


def of_assignments(s: Session, assignment_ids: Sequence[str], *, lock: bool = False) -> Sequence[Experiment]:
    """Returns those of the assignments, by id, which avoids deadlocks, without large columns; locks as :func:`lock`."""
    belonging = select(Assignment.experiment_id).where(Assignment.id.in_(assignment_ids))
    query = select(Experiment).where(Experiment.id.in_(belonging)).order_by(Experiment.id)
    query = query.options(*LARGE)
    if lock:
        query = query.with_for_update(key_share=True, of=Experiment)
    return s.scalars(query, execution_options=_FRESH).all()


def ids(s: Session) -> Sequence[str]:
    """Returns the id of every experiment."""
    return s.scalars(select(Experiment.id)).all()


def unfinished(s: Session) -> list[Experiment]:
    """Returns all unfinished experiments, oldest first."""
    query = select(Experiment).where(Experiment.state.in_(_UNFINISHED))
    return list(s.scalars(query.order_by(Experiment.created_at, Experiment.id)))


def by_idempotency_key(s: Session, project: str, key: str) -> Experiment:
    """Returns the project's experiment that was submitted with ``key``, which must exist."""
    same = Experiment.project == project, Experiment.idempotency_key == key
    return s.scalars(select(Experiment).where(*same)).one()


def advance(s: Session, experiment_id: str, number: int, digest: str) -> None:
    """Stores the last committed round and its model's digest."""
    change(s, experiment_id, round=number, digest=digest)


def change(s: Session, experiment_id: str, **values: Any) -> Experiment:
    """Updates the experiment, which the caller has locked. Only ``swap`` changes its state."""
    return s.scalars(
        update(Experiment)
        .where(Experiment.id == experiment_id)
        .values(version=Experiment.version + 1, **values)
        .returning(Experiment),
        execution_options={"populate_existing": True},
    ).one()


def delete(s: Session, experiment_id: str) -> None:
    """Deletes the experiment, which the caller has locked, with every row that belongs to it."""
    for table in reversed(Base.metadata.sorted_tables):
        if "experiment_id" in table.c:
            s.execute(table.delete().where(table.c.experiment_id == experiment_id))
    experiment = Base.metadata.tables[Experiment.__tablename__]
    s.execute(experiment.delete().where(experiment.c.id == experiment_id))


def count_by_state(s: Session) -> dict[ExperimentState, int]:
    query = select(Experiment.state, func.count()).group_by(Experiment.state)
    return dict(s.execute(query).all())


def unknown(experiment_id: str) -> FerretError:
    """Returns ``experiment.not_found``."""
    return FerretError.of_field("experiment.not_found", "experiment", experiment_id, "no such experiment")


def tags_of(s: Session, experiment_ids: Sequence[str]) -> dict[str, list[str]]:
    """Returns the tags of each of the experiments, in the order of their keys."""
    found: dict[str, list[str]] = {experiment_id: [] for experiment_id in experiment_ids}
    query = select(ExperimentTag.experiment_id, ExperimentTag.tag)
    query = query.where(ExperimentTag.experiment_id.in_(experiment_ids)).order_by(ExperimentTag.key)
    for experiment_id, tag in s.execute(query):
        found[experiment_id].append(tag)
    return found


def replace_tags(s: Session, experiment_id: str, tags: Sequence[str]) -> None:
    """Sets the tags of the experiment, which the caller has locked. Their keys must be unique."""
    s.execute(deleted(ExperimentTag).where(ExperimentTag.experiment_id == experiment_id))
    if tags:
        rows = [{"experiment_id": experiment_id, "key": tag_key(tag), "tag": tag} for tag in tags]
        s.execute(insert(ExperimentTag), rows)


def tagged(tag: str) -> ColumnElement[bool]:
    """Returns the condition that an experiment has the tag."""
    return Experiment.id.in_(select(ExperimentTag.experiment_id).where(ExperimentTag.key == tag_key(tag)))
