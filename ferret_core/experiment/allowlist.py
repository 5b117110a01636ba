"""What the experiments of a project may use: models by hub name and revision or by folder, and folders of data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from ferret_core import catalog
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import Revision, Source
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec, Strict


class AllowedModel(Strict):
    """A model that may be tuned. A folder allows those in it as well; a hub name without revision allows every one."""

    source: Source = Field(description="Hub name, or a folder on the server")
    revision: Revision | None = Field(default=None, description="Commit or tag of a hub name; null: any")

    def covers(self, model: ModelSpec) -> bool:
        """Whether ``model`` is this one, or lies in this folder, links followed."""
        if catalog.is_folder(self.source):
            return catalog.is_folder(model.source) and _lies_in(model.source, self.source)
        return model.source == self.source and self.revision in {None, model.revision}


def require_allowed(
    spec: ExperimentSpec, models: Sequence[AllowedModel] | None, data: Sequence[str] | None, project: str
) -> None:
    """``project.refused`` for a resolved ``spec`` with a model that is none of ``models``, or with a file that lies in
    none of the folders ``data``; None allows everything."""
    if models is not None and not any(model.covers(spec.model) for model in models):
        told = [f"{model.source}@{model.revision}" if model.revision else model.source for model in models]
        raise _refused("model.source", _named(spec.model), "models", told, project)
    for field, path in catalog.paths(spec):
        if data is not None and field != "model.source" and not any(_lies_in(path, folder) for folder in data):
            raise _refused(field, path, "data", data, project)


def _refused(field: str, value: str, kind: str, allowed: Sequence[str], project: str) -> FerretError:
    choice = f"choose one of {', '.join(allowed)}" if allowed else f"it allows no {kind} yet"
    reason = f"is not among the {kind} of project {project}: {choice}, or ask an administrator to add it"
    return FerretError.of_field("project.refused", field, value, reason)


def _named(model: ModelSpec) -> str:
    return f"{model.source}@{model.revision}" if model.revision else model.source


def _lies_in(path: str, folder: str) -> bool:
    return Path(path).expanduser().resolve().is_relative_to(Path(folder).expanduser().resolve())
