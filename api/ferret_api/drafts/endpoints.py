"""Writing a specification: what a change does to it, and what would come of submitting it. Nothing is stored."""

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
    """A specification with a preset or a change, by the rules that cloning follows."""
    return service.revised(caller.database, wanted)


@router.post("/experiments:plan", operation_id="plan_draft", responses=problems("experiment.not_found"))
def plan_draft(draft: Draft, caller: Researcher, context: ContextDep, project: InProject = None) -> DraftValidation:
    """All that is wrong with a specification, or what it would send, need and risk."""
    return service.planned(caller.database, draft, context.settings.readable, project)


@router.get("/presets", operation_id="list_presets", dependencies=[ViewerOnly])
def list_presets() -> PresetList:
    """Named beginnings of a specification, each right for a model of any size."""
    return PresetList(items=[Preset.model_validate(preset) for preset in PRESETS])
