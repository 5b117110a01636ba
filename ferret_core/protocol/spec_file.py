"""Specification files, in TOML or JSON: environment variables and relative paths become plain values."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from ferret_core.protocol.errors import FerretError, FieldError, FieldErrors

Tree = dict[str, Any]

_VARIABLE = re.compile(r"\$\{(\w+)\}")
# Matches only what cannot be the name of a field or on the hub. Absolute paths pass: a server may have other folders.
_RELATIVE_PATH = re.compile(r"^\.{1,2}/|^[^/~$].*\.(jsonl?|txt|gz)$")
# Parts of a specification that may contain paths; names are never paths.
_WITH_PATHS = frozenset({"model", "dataset", "partition"})
_NAMES = frozenset({"name", "revision"})
# Tables around a field in a search space.
_AROUND = frozenset({"tune", "choice"})


class Missing(NamedTuple):
    """A text that names unset environment variables."""

    field: str
    text: str
    variables: list[str]


def of_toml(source: str | Path, *, absolute_paths: bool) -> tuple[Tree, str]:
    """Reads ``source`` and substitutes variables; returns the tree, and the name of the source for errors.

    A text with a line break is the TOML itself; its relative paths start in the working folder. Any other source is the
    path of a file. A relative path in it is looked up next to the file, then in the working folder. Raises
    ``spec.invalid``.
    """
    is_text = isinstance(source, str) and "\n" in source
    file = Path() if is_text else Path(source).expanduser()
    name = "the specification" if is_text else str(file)
    tree = expand(parsed(str(source), name) if is_text else read(file))
    if missing := missing_variables(tree):
        told = [_set_it(field, text, names) for field, text, names in missing]
        raise invalid(FieldErrors(told), name)
    folders = [Path.cwd()] if is_text else [file.resolve().parent, Path.cwd()]
    return absolute(tree, folders) if absolute_paths else tree, name


def invalid(errors: FieldErrors, source: str) -> FerretError:
    """Creates ``spec.invalid`` with the ``errors`` in ``source``."""
    count = len(errors.told) + errors.omitted
    if count == 1:
        return FerretError("spec.invalid", f"{source}: {errors.told[0]}", errors)
    return FerretError("spec.invalid", f"{source}: {count} values are missing or wrong", errors)


def read(file: Path) -> Tree:
    """Reads TOML or JSON from ``file``, unchanged; raises ``spec.invalid`` if it cannot be read."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        reason = f"cannot be read ({error.strerror}); give the path of a TOML file such as examples/quickstart.toml"
        raise FerretError.of_field("spec.invalid", "FILE", str(file), reason) from error
    except UnicodeDecodeError as error:
        raise _unreadable(str(file), "TOML", error) from error
    return parsed(text, str(file))


def parsed(text: str, source: str) -> Tree:
    """Parses ``text`` as TOML, or as JSON if ``source`` ends in ``.json``."""
    form, parse = ("JSON", json.loads) if source.endswith(".json") else ("TOML", tomllib.loads)
    try:
        return parse(text)
    except ValueError as error:  # TOML's and JSON's errors alike
        raise _unreadable(source, form, error) from error


def expand(tree: Tree) -> Tree:
    """Substitutes environment variables in ``tree``; unset ones stay as written."""
    return _map_texts(tree, lambda _, text: _VARIABLE.sub(lambda match: os.environ.get(match[1], match[0]), text))


def missing_variables(tree: Tree) -> list[Missing]:
    """Lists every text that still contains a variable."""
    missing: list[Missing] = []

    def note(field: str, text: str) -> str:
        if names := [name for name in _VARIABLE.findall(text) if name not in os.environ]:
            missing.append(Missing(field, text, names))
        return text

    _map_texts(tree, note)
    return missing


def absolute(tree: Tree, folders: Sequence[Path]) -> Tree:
    """Makes relative paths in ``tree`` absolute; raises ``spec.invalid`` for a path that is in none of the folders."""

    def resolved(field: str, text: str) -> str:
        names = [name for name in field.split(".") if name not in _AROUND]
        if names[0] not in _WITH_PATHS or names[-1] in _NAMES:
            return text
        if found := next((folder / text for folder in folders if (folder / text).exists()), None):
            return str(found)
        if _RELATIVE_PATH.search(text):
            places = " or ".join(str(folder) for folder in dict.fromkeys(folders))
            raise FerretError.of_field("spec.invalid", field, text, f"no such file in {places}")
        return text

    return _map_texts(tree, resolved)


def _set_it(field: str, text: str, names: list[str]) -> FieldError:
    message = f"set the environment variable {' and '.join(names)}, or write the value itself"
    return FieldError(field=field, value=text, message=message)


def _unreadable(source: str, form: str, error: ValueError) -> FerretError:
    return FerretError.of_field("spec.invalid", "FILE", source, f"is not {form}: {error}")


def _map_texts(value: Any, change: Callable[[str, str], str], field: str = "") -> Any:
    """Returns the tree with every text ``t`` at the dotted ``field`` replaced by ``change(field, t)``."""
    if isinstance(value, str):
        return change(field, value)
    if isinstance(value, list):
        return [_map_texts(item, change, field) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        prefix = f"{field}." if field else ""
        return {name: _map_texts(item, change, f"{prefix}{name}") for name, item in cast(Tree, value).items()}
    return value
