"""A specification as people write it, in TOML or JSON: environment variables and relative paths become plain values."""

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
# What cannot be a hub name or a field's name. A server may have folders that are not here, so that absolute ones pass.
_RELATIVE_PATH = re.compile(r"^\.{1,2}/|^[^/~$].*\.(jsonl?|txt|gz)$")
# The parts of a specification whose texts may be paths; names never are.
_WITH_PATHS = frozenset({"model", "dataset", "partition"})
_NAMES = frozenset({"name", "revision"})
# What a search space writes around a field.
_AROUND = frozenset({"tune", "choice"})


class Missing(NamedTuple):
    """A text that names environment variables which are not set."""

    field: str
    text: str
    variables: list[str]


def of_toml(source: str | Path, *, absolute_paths: bool) -> tuple[Tree, str]:
    """What stands in ``source`` with variables put in, and what to call it in errors.

    A text with a line break is the TOML itself, whose relative paths are the working folder's. Everything else is the
    path of a file; a relative path in it is sought beside the file, then in the working folder. Raises
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
    """``spec.invalid`` about the ``errors`` in what is called ``source``."""
    count = len(errors.told) + errors.omitted
    if count == 1:
        return FerretError("spec.invalid", f"{source}: {errors.told[0]}", errors)
    return FerretError("spec.invalid", f"{source}: {count} values are missing or wrong", errors)


def read(file: Path) -> Tree:
    """The TOML or JSON of ``file`` as it stands; ``spec.invalid`` if it cannot be read."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        reason = f"cannot be read ({error.strerror}); give the path of a TOML file such as examples/quickstart.toml"
        raise FerretError.of_field("spec.invalid", "FILE", str(file), reason) from error
    except UnicodeDecodeError as error:
        raise _unreadable(str(file), "TOML", error) from error
    return parsed(text, str(file))


def parsed(text: str, source: str) -> Tree:
    """The TOML of ``text``, or the JSON where its ``source`` ends in ``.json``."""
    form, parse = ("JSON", json.loads) if source.endswith(".json") else ("TOML", tomllib.loads)
    try:
        return parse(text)
    except ValueError as error:  # TOML's and JSON's errors alike
        raise _unreadable(source, form, error) from error


def expand(tree: Tree) -> Tree:
    """``tree`` with the environment variables put in; those that are not set stay as they are written."""
    return _map_texts(tree, lambda _, text: _VARIABLE.sub(lambda match: os.environ.get(match[1], match[0]), text))


def missing_variables(tree: Tree) -> list[Missing]:
    """Every text that still has a variable in it."""
    missing: list[Missing] = []

    def note(field: str, text: str) -> str:
        if names := [name for name in _VARIABLE.findall(text) if name not in os.environ]:
            missing.append(Missing(field, text, names))
        return text

    _map_texts(tree, note)
    return missing


def absolute(tree: Tree, folders: Sequence[Path]) -> Tree:
    """``tree`` with relative paths made absolute; ``spec.invalid`` for what is plainly one and in none of them."""

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
    """The same tree with every text ``t`` at dotted ``field`` replaced by ``change(field, t)``."""
    if isinstance(value, str):
        return change(field, value)
    if isinstance(value, list):
        return [_map_texts(item, change, field) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        prefix = f"{field}." if field else ""
        return {name: _map_texts(item, change, f"{prefix}{name}") for name, item in cast(Tree, value).items()}
    return value
