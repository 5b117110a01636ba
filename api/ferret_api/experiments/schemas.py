"""What is asked for of an experiment."""

from __future__ import annotations

from pydantic import Field

from ferret_api.schemas import Command
from ferret_core.protocol.priority import Priority
from ferret_core.protocol.spec import ExperimentName
from ferret_core.protocol.tags_and_notes import Notes, Tags


class ExperimentChange(Command):
    """What is to be different; what is left out stays. Null takes tags and notes away."""

    name: ExperimentName = Field(default_factory=str, description="It always has one: null is refused")
    tags: Tags | None = None
    notes: Notes | None = None
    priority: Priority = Field(default_factory=int, description="It always has one: null is refused")
