"""Allowlist of a project: models by hub name and revision or by folder, and folders of data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ferret_core import catalog
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.projects import AllowedModel
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec, is_folder


def require_allowed(
    spec: ExperimentSpec, models: Sequence[AllowedModel] | None, data: Sequence[str] | None, project: str
) -> None:
    """Raises ``project.refused`` for a resolved ``spec`` with a model outside ``models``, or with a file outside the
    folders ``data``; None allows everything.
    """
    if models is not None and not any(_covers(model, spec.model) for model in models):
        named = str(AllowedModel(source=spec.model.source, revision=spec.model.revision))
        raise _refused("model.source", named, "models", [*map(str, models)], project)
    for field, path in catalog.paths(spec):
        if data is not None and field != "model.source" and not any(_lies_in(path, folder) for folder in data):
            raise _refused(field, path, "data", data, project)


def _refused(field: str, value: str, kind: str, allowed: Sequence[str], project: str) -> FerretError:
    choice = f"choose one of {', '.join(allowed)}" if allowed else f"it allows no {kind} yet"
    reason = f"is not among the {kind} of project {project}: {choice}, or ask an administrator to add it"
    return FerretError.of_field("project.refused", field, value, reason)


def _covers(allowed: AllowedModel, model: ModelSpec) -> bool:
    """Returns True if ``model`` is the allowed one, or is inside the allowed folder after resolving links."""
    if is_folder(allowed.source):
        return is_folder(model.source) and _lies_in(model.source, allowed.source)
    return model.source == allowed.source and allowed.revision in {None, model.revision}


def _lies_in(path: str, folder: str) -> bool:
    return Path(path).expanduser().resolve().is_relative_to(Path(folder).expanduser().resolve())
