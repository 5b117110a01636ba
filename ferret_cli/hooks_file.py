"""``--site my_site.py``: a site's own functions, from the Python file that defines them."""

from __future__ import annotations

import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from ferret_core.client.hooks import Site
from ferret_core.protocol.errors import FerretError

NAME = "ferret_site"


def load(path: Path) -> Site:
    """Returns the one :class:`Site` that the file defines; raises ``request.invalid`` with the reason if that fails.

    The file is executed, with its folder on the import path.
    """
    sites = {id(value): value for value in vars(_run(path)).values() if isinstance(value, Site)}
    if len(sites) != 1:
        raise _refused(path, f"defines {len(sites) or 'no'} sites: write `site = ferret_sdk.Site()` once")
    (site,) = sites.values()
    if site.trains is None and site.evaluates is None:
        raise _refused(path, "has neither a function under @site.train nor one under @site.evaluate")
    return site


def _run(path: Path) -> ModuleType:
    spec = spec_from_file_location(NAME, path)
    if spec is None or spec.loader is None:
        raise _refused(path, "is not the path of a Python file, which ends in .py")
    module = module_from_spec(spec)
    sys.modules[NAME] = module  # as an import does: pickles and dataclasses look there
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = lines[-1] if lines else getattr(error, "lineno", None)
        raise _refused(path, f"{f'line {line}: ' if line else ''}{type(error).__name__}: {error}") from error
    return module


def _refused(path: Path, message: str) -> FerretError:
    return FerretError.of_field("request.invalid", "--site", str(path), message)
