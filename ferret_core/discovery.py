"""The one plug-in mechanism: a package's files are its entries, the file name is the name.

``_base.py`` holds the interface; any other file without a leading underscore holds one final class whose name
is given by the package's interface (``Algorithm``, ``Dataset``, ...). Nothing is registered anywhere.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from ferret_core.protocol.errors import FerretError


def names(package: str) -> list[str]:
    """Sorted names of the entries of ``package``, found without importing them."""
    path = importlib.import_module(package).__path__
    return sorted(info.name for info in pkgutil.iter_modules(path) if not (info.ispkg or info.name.startswith("_")))


def load(package: str, name: str, field: str) -> ModuleType:
    """The module of entry ``name``; ``spec.invalid`` about ``field`` if there is none."""
    known = names(package)
    if name not in known:
        raise FerretError.of_field("spec.invalid", field, name, f"unknown; choose one of {', '.join(known)}")
    return importlib.import_module(f"{package}.{name}")
