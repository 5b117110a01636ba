"""Refuses at once what the workers would refuse: files and folders that the service does not read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ferret_core import catalog, files
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec


def require_roots(spec: ExperimentSpec, roots: Sequence[Path]) -> None:
    """``dataset.invalid`` or ``model.invalid`` for a path of a resolved ``spec`` that lies under none of ``roots``.

    The answer is the same whether there is something at the path or not.
    """
    for field, path in catalog.paths(spec):
        try:
            files.allowed(Path(path).expanduser(), roots)
        except files.UnfitFile as error:
            raise FerretError.of_field(f"{field.partition('.')[0]}.invalid", field, path, str(error)) from error
