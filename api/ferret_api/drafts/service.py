"""What there is to say of a specification that nobody has submitted yet."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import NamedTuple

from ferret_api.drafts import architecture_cache
from ferret_api.drafts.schemas import Change, Draft
from ferret_api.experiments import service as experiments
from ferret_api.experiments.path_allowlist import require_roots
from ferret_core.experiment import estimate as planning
from ferret_core.experiment import presets
from ferret_core.experiment.diff import change_between
from ferret_core.experiment.spec_patch import revise
from ferret_core.experiment.throughput import measured_flops
from ferret_core.experiment.validation import essential, examine
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.base import Failure, Json
from ferret_core.protocol.resources.drafts import DraftValidation, Estimate, PatchedSpec
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.system.untrusted_files import Readable, within
from ferret_db.database import Database
from ferret_db.repositories import experiments as rows

_flops = cache(measured_flops)
"""Once: it takes a moment, and a busy machine is not to be measured with every key that is pressed."""


class _Original(NamedTuple):
    project: str
    spec: Json


def revised(database: Database, wanted: Change) -> PatchedSpec:
    """``spec.invalid`` for text that is no TOML, ``catalog.not_found`` for an unknown preset, and
    ``experiment.not_found`` for an ``original`` that there is none of."""
    spec = _begin(database, wanted)
    dropped: Json = {}
    if wanted.preset is not None:
        spec, dropped = presets.chosen(spec, wanted.preset)
    spec, more = revise(spec, wanted.change)
    return PatchedSpec(spec=spec, dropped={**dropped, **more})


def planned(database: Database, draft: Draft, readable: Readable, project: str | None) -> DraftValidation:
    """``experiment.not_found`` for an ``original`` that there is none of."""
    original = _original(database, draft.original)
    examined = examine(draft.spec)
    spec, problem = examined.spec, examined.problem
    if spec is not None:
        problem = _refusal(database, spec, readable, project or (original.project if original else None))
    with within(readable):
        plan, unplanned = _plan(spec, draft) if spec is not None and problem is None else (None, None)
    change = change_between(original.spec, examined.filled) if original and problem is None else None
    return DraftValidation(
        filled=examined.filled, problem=_failure(problem), plan=plan, unplanned=_failure(unplanned), change=change
    )


def _begin(database: Database, wanted: Change) -> Json:
    if wanted.spec is not None:
        return wanted.spec
    original = _original(database, wanted.original)
    return essential(original.spec) if original else _read(wanted.toml)


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


def _plan(spec: ExperimentSpec, draft: Draft) -> tuple[Estimate | None, FerretError | None]:
    try:
        outline = architecture_cache.of(spec.model.source, draft.shape)
        found = planning.plan(spec, outline, draft.examples, draft.tokens, _flops())
    except FerretError as error:
        return None, error
    return Estimate.model_validate(planning.document(found)), None


def _failure(error: FerretError | None) -> Failure | None:
    return Failure.model_validate(error.to_json()) if error else None
