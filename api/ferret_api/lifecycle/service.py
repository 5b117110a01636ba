"""Actions on an experiment; the round engine decides which are possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError
from sqlalchemy.orm import Session

from ferret_api.experiments import service
from ferret_api.experiments.schemas import Experiment
from ferret_api.lifecycle.schemas import Extension
from ferret_api.schemas import Json
from ferret_core.protocol.errors import FerretError, field_errors
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.revision import revise
from ferret_db import tables
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.repositories import experiments

Move = Callable[[Session, str], tables.Experiment]


def move(database: Database, transition: Move, experiment_id: str) -> Experiment:
    """The experiment after one of the round engine's transitions; ``experiment.conflict`` if its state forbids it."""
    with database.begin() as s:
        return service.shown(s, transition(s, experiment_id))


def extend(database: Database, experiment_id: str, wanted: Extension) -> Experiment:
    """The experiment with more rounds to go; ``experiment.conflict`` unless it has as many as the caller expects."""
    with database.begin() as s:
        experiment = experiments.lock(s, experiment_id)
        expected = wanted.expected_rounds
        if expected is not None and experiment.rounds == expected + wanted.rounds:
            return service.shown(s, experiment)
        if expected is not None and experiment.rounds != expected:
            message = f"{experiment_id} has {experiment.rounds} rounds by now; reload it and try again"
            raise FerretError.of_field("experiment.conflict", "expected_rounds", expected, message)
        return service.shown(s, lifecycle.extend(s, experiment_id, wanted.rounds))


def clone(
    database: Database, experiment_id: str, patch: Json, roots: Sequence[Path], idempotency_key: str | None
) -> Experiment:
    """A new experiment with the specification of another, changed by a JSON Merge Patch as ``revise`` describes."""
    with database.read() as s:
        stored = experiments.get(s, experiment_id).spec
    try:
        spec = ExperimentSpec.model_validate(revise(stored, patch).document)
    except ValidationError as error:
        raise FerretError.of_fields("spec.invalid", field_errors(error, model=ExperimentSpec)) from error
    return service.submit(database, spec, roots, idempotency_key, cloned_from=experiment_id)


def delete(database: Database, experiment_id: str) -> None:
    """Forgets a finished experiment with all that belongs to it."""
    with database.begin() as s:
        lifecycle.delete(s, experiment_id)
