"""Check of a specification's paths at submission, by the same rules as in the workers."""

from __future__ import annotations

from pathlib import Path

from ferret_core import catalog
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.system import untrusted_files


def require_roots(spec: ExperimentSpec, readable: untrusted_files.Readable) -> None:
    """Raises ``dataset.invalid`` or ``model.invalid`` for a path of a resolved ``spec`` that is not ``readable``.

    The error does not reveal if the path exists.
    """
    for field, path in catalog.paths(spec):
        try:
            untrusted_files.allowed(Path(path).expanduser(), readable)
        except untrusted_files.UntrustedFileError as error:
            raise FerretError.of_field(f"{field.partition('.')[0]}.invalid", field, path, str(error)) from error
