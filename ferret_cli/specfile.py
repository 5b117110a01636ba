"""Reads an experiment's TOML or JSON: environment variables, paths and ``--set`` included."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from ferret_core.protocol.errors import FerretError, field_errors
from ferret_core.protocol.spec import ExperimentSpec

Tree = dict[str, Any]

_VARIABLE = re.compile(r"\$\{(\w+)\}")
# The parts of a specification whose texts may be paths; names never are.
_WITH_PATHS = frozenset({"model", "dataset", "partition"})
_NAMES = frozenset({"name", "revision"})


def load(file: Path, assignments: Sequence[str] = (), *, absolute_paths: bool = True) -> ExperimentSpec:
    """The specification in ``file`` with each ``a.b=value`` of ``assignments`` put over it.

    ``${NAME}`` in a text stands for the environment variable. With ``absolute_paths``, a relative path that exists
    beside the file or in the working folder is made absolute, for a server or worker on this machine. Raises
    ``spec.invalid``.
    """
    tree = _expand(read(file))
    if absolute_paths:
        tree = _absolute(tree, [file.resolve().parent, Path.cwd()])
    merge(tree, assigned(assignments, absolute_paths=absolute_paths))
    return validated(tree, str(file))


def assigned(assignments: Sequence[str], *, absolute_paths: bool = True) -> Tree:
    """The texts ``a.b=value`` as one tree, the later winning; variables and paths as in :func:`load`."""
    over: Tree = {}
    for assignment in assignments:
        merge(over, _assignment(assignment))
    over = _expand(over)
    return _absolute(over, [Path.cwd()]) if absolute_paths else over


def removed(paths: Sequence[str]) -> Tree:
    """The dotted ``paths`` as one tree of nulls: in a JSON Merge Patch, what is taken away."""
    tree: Tree = {}
    for path in paths:
        merge(tree, _nested(path, None, "--unset", "a.b"))
    return tree


def validated(tree: Tree, source: str) -> ExperimentSpec:
    """The specification that ``tree`` is; ``spec.invalid`` says what is wrong with it, and that it is ``source``."""
    try:
        return ExperimentSpec.model_validate(tree)
    except ValidationError as error:
        detail = f"{source}: {error.error_count()} values are missing or wrong"
        raise FerretError("spec.invalid", detail, field_errors(error.errors())) from error


def read(file: Path) -> Tree:
    """The TOML or JSON of ``file`` as it stands; ``spec.invalid`` if it cannot be read."""
    try:
        text = file.read_text(encoding="utf-8")
        return json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        reason = f"cannot be read ({error.strerror}); give the path of a TOML file such as examples/quickstart.toml"
        raise FerretError.of_field("spec.invalid", "FILE", str(file), reason) from error
    except ValueError as error:  # TOML's, JSON's and UTF-8's errors alike
        form = "JSON" if file.suffix == ".json" else "TOML"
        raise FerretError.of_field("spec.invalid", "FILE", str(file), f"is not {form}: {error}") from error


def _assignment(text: str) -> Tree:
    """``a.b=value`` as ``{"a": {"b": value}}``; a value that is no TOML is taken as text, so paths need no quotes."""
    path, separator, value = text.partition("=")
    if not separator:
        raise FerretError.of_field("spec.invalid", "--set", text, "is not of the form a.b=value")
    return _nested(path, _value(value.strip()), "--set", "a.b=value")


def _nested(path: str, value: Any, option: str, form: str) -> Tree:
    names = [name.strip() for name in path.split(".")]
    if not all(names):
        raise FerretError.of_field("spec.invalid", option, path, f"is not of the form {form}")
    for name in reversed(names):
        value = {name: value}
    return value


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def merge(tree: Tree, over: Tree) -> None:
    """Puts ``over`` over ``tree``, table by table."""
    for name, value in over.items():
        if isinstance(value, dict) and isinstance(tree.get(name), dict):
            merge(tree[name], cast(Tree, value))
        else:
            tree[name] = value


def _expand(tree: Tree) -> Tree:
    return _map_texts(tree, lambda field, text: _VARIABLE.sub(lambda match: _variable(field, text, match[1]), text))


def _variable(field: str, text: str, name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise FerretError.of_field("spec.invalid", field, text, f"set the environment variable {name}")
    return value


def _absolute(tree: Tree, folders: Sequence[Path]) -> Tree:
    def resolved(field: str, text: str) -> str:
        section, _, rest = field.partition(".")
        if section not in _WITH_PATHS or rest in _NAMES:
            return text
        found = (folder / text for folder in folders if (folder / text).exists())
        return str(next(found, text))

    return _map_texts(tree, resolved)


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
