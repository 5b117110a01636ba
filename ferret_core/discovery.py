"""The only plug-in mechanism: a package's files are its entries, named like the files.

``base.py`` holds the interface, in some packages with ``norms.py`` and ``traits.py``. Any other file without a leading
underscore holds one final class; the package's interface fixes the name of the class (``Algorithm``, ``Dataset``, ...).
Nothing is registered anywhere.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from threading import Lock
from types import ModuleType

from ferret_core.protocol.errors import FerretError, suggestion

INTERFACES = frozenset({"base", "norms", "traits"})
_PARSING = Lock()
"""In Python 3.11 parsing fails in a thread while another parses: https://github.com/python/cpython/issues/106905."""


def names(package: str) -> list[str]:
    """Returns the sorted names of the entries of ``package``, without importing them."""
    path = importlib.import_module(package).__path__
    files = (info.name for info in pkgutil.iter_modules(path) if not info.ispkg)
    return sorted(name for name in files if name not in INTERFACES and not name.startswith("_"))


@cache
def documentation(package: str, name: str) -> str:
    """Returns the docstring of entry ``name``, without importing its dependencies."""
    found = find_spec(f"{package}.{name}")
    assert found is not None
    assert found.origin is not None, f"{package}.{name} is not read from a file"
    text = Path(found.origin).read_text(encoding="utf-8")
    with _PARSING:
        module = ast.parse(text)
    return cleandoc(ast.get_docstring(module) or "")


def load(package: str, name: str, field: str, also: Iterable[str] = ()) -> ModuleType:
    """Returns the module of ``name``; raises ``spec.invalid`` about ``field``, which suggests one of the names and
    ``also``."""
    try:
        return _module(package, name)
    except LookupError as error:
        known = sorted([*names(package), *also])
        raise FerretError.of_field("spec.invalid", field, name, f"is unknown; {suggestion(name, known)}") from error


@cache
def _module(package: str, name: str) -> ModuleType:
    """Imports an entry; cached, because a service looks up the same entries with every request."""
    if name not in names(package):
        raise LookupError(name)
    return importlib.import_module(f"{package}.{name}")
