"""Endpoints that help to write a specification. They store nothing."""

from __future__ import annotations

from fastapi import APIRouter

from ferret_api.access import Researcher, ViewerOnly
from ferret_api.context import ContextDep
from ferret_api.drafts import service
from ferret_api.drafts.schemas import Change, Draft
from ferret_api.experiments.endpoints import InProject
from ferret_api.http.problems import problems
from ferret_api.schemas import PREFIX
from ferret_core.experiment.presets import PRESETS
from ferret_core.protocol.resources.drafts import DraftValidation, PatchedSpec, Preset, PresetList

router = APIRouter(prefix=PREFIX, tags=["experiments"])


@router.post(
    "/experiments:revise",
    operation_id="revise_draft",
    responses=problems("spec.invalid", "catalog.not_found", "experiment.not_found"),
)
def revise_draft(wanted: Change, caller: Researcher) -> PatchedSpec:
    """Applies a preset or a patch to a specification, by the rules of cloning. Requires the role researcher.

    Nothing is stored."""
    return service.revised(caller.database, wanted)


@router.post("/experiments:plan", operation_id="plan_draft", responses=problems("experiment.not_found"))
def plan_draft(draft: Draft, caller: Researcher, context: ContextDep, project: InProject = None) -> DraftValidation:
    """Validates a specification. If it is valid, estimates its traffic, memory, time and projection noise.

    Nothing is stored. The response lists every error of an invalid specification. Requires the role researcher."""
    return service.planned(caller.database, draft, context.settings.readable, project)


@router.get("/presets", operation_id="list_presets", dependencies=[ViewerOnly])
def list_presets() -> PresetList:
    """Lists the presets: named starting points of a specification, for models of any size. Requires the role viewer."""
    return PresetList(items=[Preset.model_validate(preset) for preset in PRESETS])
