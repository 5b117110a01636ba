"""Edits of an experiment's name, tags, notes and priority.

The entity tag covers only these fields, so that a round committed in the meantime does not make an edit fail.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ferret_api.experiments import service
from ferret_api.http.entity_tag import matches
from ferret_api.schemas import Command
from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.experiments import Experiment
from ferret_core.protocol.spec import ExperimentName
from ferret_core.protocol.tags_and_notes import Notes, Priority, Tags
from ferret_db.database import Database
from ferret_db.repositories import audit, experiments, outbox


class ExperimentChange(Command):
    """Request to change an experiment. Omitted fields stay unchanged. Null removes tags and notes."""

    name: ExperimentName = Field(default_factory=str, description="Required value: null is refused")
    tags: Tags | None = None
    notes: Notes | None = None
    priority: Priority = Field(default_factory=int, description="Required value: null is refused")


_LENGTH = 32


def entity_tag(experiment: Experiment) -> str:
    """Returns the entity tag with quotes, as in ``ETag`` and ``If-Match``."""
    return f'"{digest_json([experiment.name, experiment.tags, experiment.notes, experiment.priority])[:_LENGTH]}"'


def edit(
    database: Database, experiment_id: str, wanted: ExperimentChange, if_match: str | None, actor: str
) -> Experiment:
    """Edits the experiment and returns it; raises ``experiment.changed`` unless its entity tag matches ``if_match``."""
    with database.begin() as s:
        row = experiments.lock(s, experiment_id)
        before = service.shown(s, row)
        if if_match is not None and not matches(if_match, entity_tag(before)):
            reason = f"{experiment_id} has been edited since; read it again and repeat your edit"
            raise FerretError.of_field("experiment.changed", "If-Match", if_match, reason)
        changes = _changes(before, wanted)
        if not changes:
            return before
        if "tags" in changes:
            experiments.replace_tags(s, experiment_id, changes["tags"])
        row = experiments.change(s, experiment_id, **{name: changes[name] for name in changes.keys() - {"tags"}})
        if "priority" in changes:
            outbox.touch(s, experiment_id)
        audit.record(s, actor, "experiment.edited", experiment_id, **_told(before, changes))
        return service.shown(s, row)


def _changes(before: Experiment, wanted: ExperimentChange) -> dict[str, Any]:
    """Returns the fields that would change. Null means the value of a new experiment."""
    empty = {"tags": [], "notes": ""}
    given = {
        name: empty[name] if value is None else value for name, value in wanted.model_dump(exclude_unset=True).items()
    }
    return {name: value for name, value in given.items() if value != getattr(before, name)}


def _told(before: Experiment, changes: dict[str, Any]) -> dict[str, Any]:
    """Returns the details for the audit log. Notes may contain personal data, so only their length is included."""
    told: dict[str, Any] = {"name": changes.get("name", before.name)}
    if "name" in changes:
        told["name_before"] = before.name
    if "tags" in changes:
        told["tags"] = ", ".join(changes["tags"])
    if "notes" in changes:
        told["notes_characters"] = len(changes["notes"])
    if "priority" in changes:
        told["priority"] = changes["priority"]
    return told
