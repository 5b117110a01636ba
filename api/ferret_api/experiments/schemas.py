"""Request bodies for experiments."""

from __future__ import annotations

from pydantic import Field

from ferret_api.schemas import Command
from ferret_core.protocol.spec import ExperimentName
from ferret_core.protocol.tags_and_notes import Notes, Priority, Tags


class ExperimentChange(Command):
    """Request to change an experiment. Omitted fields stay unchanged. Null removes tags and notes."""

    name: ExperimentName = Field(default_factory=str, description="Required value: null is refused")
    tags: Tags | None = None
    notes: Notes | None = None
    priority: Priority = Field(default_factory=int, description="Required value: null is refused")
