"""Revision, validation and planning of specifications before submission."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import NamedTuple

from ferret_api.drafts import architecture_cache
from ferret_api.drafts.schemas import Change, Draft
from ferret_api.experiments import service as experiments
from ferret_api.experiments.path_allowlist import require_roots
from ferret_core.catalog import ResolvedExperiment
from ferret_core.experiment import estimate as planning
from ferret_core.experiment import presets
from ferret_core.experiment.diff import compute_patch
from ferret_core.experiment.estimate import measured_flops
from ferret_core.experiment.spec_patch import revise
from ferret_core.experiment.validation import minimal_document, validate
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.base import Failure, Json
from ferret_core.protocol.resources.drafts import DraftValidation, Estimate, PatchedSpec
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.system.untrusted_files import Readable, allowed_roots
from ferret_db.database import Database
from ferret_db.repositories import experiments as rows

_flops = cache(measured_flops)
"""Measured once, since it takes a moment and plans are requested with every key press."""


class _Original(NamedTuple):
    project: str
    spec: Json


def revised(database: Database, wanted: Change) -> PatchedSpec:
    """Returns the revised specification.

    Raises ``spec.invalid`` for invalid TOML, ``catalog.not_found`` for an unknown preset, and ``experiment.not_found``
    for an unknown ``original``."""
    spec = _begin(database, wanted)
    dropped: Json = {}
    if wanted.preset is not None:
        spec, dropped = presets.apply_preset(spec, wanted.preset)
    spec, more = revise(spec, wanted.change)
    return PatchedSpec(spec=spec, dropped={**dropped, **more})


def planned(database: Database, draft: Draft, readable: Readable, project: str | None) -> DraftValidation:
    """Returns the errors of a draft, or its plan. Raises ``experiment.not_found`` for an unknown ``original``."""
    original = _original(database, draft.original)
    examined = validate(draft.spec)
    experiment, problem = examined.experiment, examined.problem
    if experiment is not None:
        problem = _refusal(database, experiment.spec, readable, project or (original.project if original else None))
    with allowed_roots(readable):
        plan, unplanned = _plan(experiment, draft) if experiment is not None and problem is None else (None, None)
    change = compute_patch(original.spec, examined.filled) if original and problem is None else None
    return DraftValidation(
        filled=examined.filled, problem=_failure(problem), plan=plan, unplanned=_failure(unplanned), change=change
    )


def _begin(database: Database, wanted: Change) -> Json:
    if wanted.spec is not None:
        return wanted.spec
    original = _original(database, wanted.original)
    return minimal_document(original.spec) if original else _read(wanted.toml)


def _read(text: str | None) -> Json:
    try:
        return tomllib.loads(text or "")
    except tomllib.TOMLDecodeError as error:
        raise FerretError.of_field("spec.invalid", "toml", None, f"is not TOML: {error}") from error


def _original(database: Database, id: str | None) -> _Original | None:
    if id is None:
        return None
    with database.read() as s:
        row = rows.get(s, id)
        return _Original(row.project, {**row.spec, "name": row.name})


def _refusal(database: Database, spec: ExperimentSpec, readable: Readable, project: str | None) -> FerretError | None:
    try:
        require_roots(spec, readable)
        with database.read() as s:
            experiments.chosen_project(s, project, spec)
    except FerretError as error:
        return error
    return None


def _plan(experiment: ResolvedExperiment, draft: Draft) -> tuple[Estimate | None, FerretError | None]:
    try:
        outline = architecture_cache.of(experiment.spec.model.source, draft.shape)
        found = planning.estimate(experiment, outline, draft.examples, draft.tokens, _flops())
    except FerretError as error:
        return None, error
    return Estimate.model_validate(planning.document(found)), None


def _failure(error: FerretError | None) -> Failure | None:
    return Failure.model_validate(error.to_json()) if error else None
