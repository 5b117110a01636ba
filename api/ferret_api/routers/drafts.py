"""Endpoints that help to write a specification. They store nothing."""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from fastapi import APIRouter
from pydantic import Field, model_validator

from ferret_api.access import Researcher, ViewerOnly
from ferret_api.context import ContextDep
from ferret_api.experiments import service as experiments
from ferret_api.experiments.service import require_roots
from ferret_api.http.errors import problems
from ferret_api.routers.experiments import InProject
from ferret_api.schemas import PREFIX, SPECIFICATION, Command
from ferret_core import sample
from ferret_core.aggregation.projection_noise import participants_of
from ferret_core.catalog import ResolvedExperiment
from ferret_core.experiment import estimate as planning
from ferret_core.experiment import presets
from ferret_core.experiment.diff import compute_patch
from ferret_core.experiment.estimate import assumed_speed
from ferret_core.experiment.spec_patch import revise
from ferret_core.experiment.validation import minimal_document, validate
from ferret_core.models import architecture
from ferret_core.models.architecture import LLAMAS, Architecture
from ferret_core.privacy.mechanism import calibrated
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import MAX_EXAMPLES, MAX_WIDTH
from ferret_core.protocol.resources.base import Failure, Json
from ferret_core.protocol.resources.drafts import DraftValidation, Estimate, PatchedSpec, Preset, PresetList
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.system.untrusted_files import Readable, UntrustedFileError, allowed, allowed_roots
from ferret_db.database import Database
from ferret_db.repositories import experiments as rows

LONGEST_TOML = 100_000
Shape = Annotated[str, Field(max_length=64, json_schema_extra={"enum": list(LLAMAS)})]
Document = Annotated[Json, Field(description="A specification; it may be incomplete or invalid")]


class Change(
    Command,
    json_schema_extra={
        "examples": [{"preset": "fast", "spec": SPECIFICATION, "change": {"algorithm": {"name": "fedavg"}}}]
    },
):
    """Request to change a specification, given as JSON, as TOML or by an experiment."""

    spec: Document | None = None
    original: str | None = Field(
        default=None, max_length=64, description="Id of an experiment that provides the specification"
    )
    toml: str | None = Field(default=None, max_length=LONGEST_TOML, description="The specification as TOML")
    preset: str | None = Field(default=None, max_length=64, description="Name of a preset, applied first")
    change: Json = Field(
        default={},
        description="JSON Merge Patch (RFC 7396). Another algorithm, dataset or partition drops the "
        "previous options, except the values that `algorithm.local` has in common; an "
        "option replaces options that it excludes",
    )

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if [self.spec, self.toml, self.original].count(None) != 2:
            raise ValueError("give one of spec, toml and original")
        return self


class Draft(Command, json_schema_extra={"examples": [{"spec": SPECIFICATION, "shape": "llama-1b", "examples": 400}]}):
    """Request to plan a specification, with the plan's assumptions."""

    spec: Document
    original: str | None = Field(default=None, max_length=64, description="Id of the experiment that it modifies")
    shape: Shape | None = Field(
        default=None, description="Plan for a model of these sizes, in place of the one in the specification"
    )
    examples: int | None = Field(
        default=None, ge=1, le=MAX_EXAMPLES, description="Examples per participant, used to convert epochs to steps"
    )
    tokens: int = Field(default=256, ge=1, le=MAX_WIDTH, description="Tokens per sequence, prompt and answer together")


router = APIRouter(prefix=PREFIX, tags=["experiments"])

_speed = cache(assumed_speed)
"""Measured once, since it takes a moment and plans are requested with every key press."""
OUTLINES = 8
"""Cached model outlines, since the dashboard requests a plan with every change to a form."""
FolderStamp = tuple[tuple[str, int, int], ...]
"""Name, size and modification time of every file in a folder."""


@router.post(
    "/experiments:revise",
    operation_id="revise_draft",
    responses=problems("spec.invalid", "catalog.not_found", "experiment.not_found"),
)
def revise_draft(wanted: Change, caller: Researcher) -> PatchedSpec:
    """Applies a preset or a patch to a specification, by the rules of cloning. Requires the role researcher.

    Nothing is stored."""
    spec = _begin(caller.database, wanted)
    dropped: Json = {}
    if wanted.preset is not None:
        spec, dropped = presets.apply_preset(spec, wanted.preset)
    spec, more = revise(spec, wanted.change)
    return PatchedSpec(spec=spec, dropped={**dropped, **more})


@router.post("/experiments:plan", operation_id="plan_draft", responses=problems("experiment.not_found"))
def plan_draft(draft: Draft, caller: Researcher, context: ContextDep, project: InProject = None) -> DraftValidation:
    """Validates a specification. If it is valid, estimates its traffic, memory, time and projection noise.

    Nothing is stored. The response lists every error of an invalid specification. Requires the role researcher."""
    database, readable = caller.database, context.settings.readable
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


@router.get("/presets", operation_id="list_presets", dependencies=[ViewerOnly])
def list_presets(context: ContextDep) -> PresetList:
    """Lists the presets, which are named starting points of a specification for models of any size, and a quickstart.

    Requires the role viewer."""
    items = [Preset.model_validate(preset) for preset in presets.PRESETS]
    return PresetList(items=items, quickstart=_quickstart(context.settings.readable))


def _quickstart(readable: Readable) -> Json | None:
    try:
        allowed(sample.quickstart_data(), readable)
    except UntrustedFileError:
        return None
    return sample.quickstart()


class _Original(NamedTuple):
    project: str
    spec: Json


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
        experiment = experiment._replace(spec=calibrated(experiment.spec, participants_of(experiment.spec)))
        outline = _outline(experiment.spec.model.source, draft.shape)
        lengths = planning.TokenLengths.assumed(draft.tokens, experiment, outline)
        found = planning.estimate(experiment, outline, draft.examples, lengths, _speed())
    except FerretError as error:
        return None, error
    return Estimate.model_validate(planning.document(found)), None


def _failure(error: FerretError | None) -> Failure | None:
    return Failure.model_validate(error.to_json()) if error else None


def _outline(source: str, shape: str | None) -> Architecture:
    """Raises ``model.invalid`` if ``source`` is no model folder here, and ``request.invalid`` for an unknown shape."""
    return architecture.of_llama(shape) if shape else _of_folder(source, _folder_stamp(Path(source).expanduser()))


@lru_cache(OUTLINES)
def _of_folder(source: str, _stamp: FolderStamp) -> Architecture:
    return architecture.of_folder(source)


def _folder_stamp(folder: Path) -> FolderStamp:
    try:
        found = [(path.name, path.stat()) for path in sorted(folder.iterdir())]
    except OSError:
        return ()  # reading the outline raises the error
    return tuple((name, status.st_size, status.st_mtime_ns) for name, status in found)
