"""Actions on an experiment. The round engine decides which ones its state allows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy.orm import Session

from ferret_api.experiments import service
from ferret_api.lifecycle.schemas import Extension
from ferret_api.participants import resumable_upload
from ferret_core.experiment.spec_patch import revise
from ferret_core.protocol.audit import AuditAction
from ferret_core.protocol.errors import FerretError, field_errors
from ferret_core.protocol.resources.base import Json
from ferret_core.protocol.resources.experiments import Experiment
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.storage import Storage
from ferret_core.system.untrusted_files import Readable
from ferret_db import tables
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.repositories import audit, experiments, participants

Move = Callable[[Session, str], tables.Experiment]


def move(database: Database, transition: Move, experiment_id: str, actor: str, action: AuditAction) -> Experiment:
    """Applies a transition of the round engine; raises ``experiment.conflict`` if the state forbids it."""
    with database.begin() as s:
        before = _standing(experiments.lock(s, experiment_id))
        after = transition(s, experiment_id)
        if _standing(after) != before:  # repeating an action changes nothing and is not recorded
            audit.record(s, actor, action, experiment_id, name=after.name)
        return service.shown(s, after)


def extend(database: Database, experiment_id: str, wanted: Extension, actor: str) -> Experiment:
    """Adds rounds; raises ``experiment.conflict`` unless the experiment has the expected number of rounds."""
    with database.begin() as s:
        experiment = experiments.lock(s, experiment_id)
        expected = wanted.expected_rounds
        if expected is not None and experiment.rounds == expected + wanted.rounds:
            return service.shown(s, experiment)
        if expected is not None and experiment.rounds != expected:
            message = f"{experiment_id} has {experiment.rounds} rounds now; reload it and try again"
            raise FerretError.of_field("experiment.conflict", "expected_rounds", expected, message)
        extended = lifecycle.extend(s, experiment_id, wanted.rounds)
        audit.record(s, actor, "experiment.extended", experiment_id, name=extended.name, rounds=extended.rounds)
        return service.shown(s, extended)


def clone(
    database: Database,
    experiment_id: str,
    patch: Json,
    readable: Readable,
    actor: str,
    *,
    project: str | None,
    idempotency_key: str | None,
) -> Experiment:
    """Creates an experiment with the specification of another, changed by a JSON Merge Patch as in ``revise``.

    It belongs to ``project``, by default to that of the original.
    """
    with database.read() as s:
        original = experiments.get(s, experiment_id)
    try:
        named = {**original.spec, "name": original.name}
        spec = ExperimentSpec.model_validate(revise(named, patch).document)
    except ValidationError as error:
        raise FerretError.of_fields("spec.invalid", field_errors(error, model=ExperimentSpec)) from error
    return service.submit(
        database,
        spec,
        readable,
        actor,
        project=project or original.project,
        idempotency_key=idempotency_key,
        original=original,
    )


def delete(database: Database, storage: Storage, experiment_id: str, actor: str) -> None:
    """Deletes a finished experiment and all its data, and records this in the audit log."""
    with database.begin() as s:
        name = experiments.lock(s, experiment_id).name
        members = [row.id for row in participants.ever_of_experiment(s, experiment_id)]
        lifecycle.delete(s, experiment_id)
        audit.record(s, actor, "experiment.deleted", experiment_id, name=name)
    resumable_upload.forget(storage, members)


def _standing(experiment: tables.Experiment) -> tuple[str, datetime | None]:
    return experiment.state, experiment.archived_at
