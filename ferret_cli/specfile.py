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

from ferret_cli.output import say
from ferret_core.protocol.errors import FerretError, FieldError, FieldErrors, field_errors
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.revision import revise

Tree = dict[str, Any]

_VARIABLE = re.compile(r"\$\{(\w+)\}")
# What cannot be a hub name or a field's name. A server may have folders that are not here, so that absolute ones pass.
_RELATIVE_PATH = re.compile(r"^\.{1,2}/|^[^/~$].*\.(jsonl?|txt|gz)$")
# The parts of a specification whose texts may be paths; names never are.
_WITH_PATHS = frozenset({"model", "dataset", "partition"})
_NAMES = frozenset({"name", "revision"})
# What a search space writes around a field.
_AROUND = frozenset({"tune", "choice"})


def load(
    file: Path | None, assignments: Sequence[str] = (), unset: Sequence[str] = (), *, absolute_paths: bool = True
) -> ExperimentSpec:
    """The specification in ``file``, or an empty one, changed as :func:`document` says. Raises ``spec.invalid``."""
    tree = document(file, assignments, unset, absolute_paths=absolute_paths)
    if "tune" in tree:
        message = f"is a search space: `ferret tune {file}` searches it, --unset tune leaves it out"
        raise FerretError.of_field("spec.invalid", "tune", ", ".join(tree["tune"]), message)
    return validated(tree, str(file or "the specification"))


def document(
    file: Path | None, assignments: Sequence[str] = (), unset: Sequence[str] = (), *, absolute_paths: bool = True
) -> Tree:
    """What stands in ``file``, changed by each ``a.b=value`` of ``assignments`` and each ``a.b`` of ``unset``.

    :func:`ferret_core.revision.revise` says what else a change does; what it drops is told on stderr. ``${NAME}`` in a
    text stands for the environment variable, which only the texts that are left after the changes need. With
    ``absolute_paths``, for a server or worker on this machine, a relative path that exists beside the file or in the
    working folder is made absolute; one of ``assignments`` is sought in the working folder alone. Raises
    ``spec.invalid`` for what cannot be read.
    """
    tree = _expand(read(file)) if file else {}
    if file and absolute_paths:
        tree = _absolute(tree, [file.resolve().parent, Path.cwd()])
    revised = revise(tree, changes(assignments, unset, absolute_paths=absolute_paths))
    _require_variables(revised.document)
    _say_dropped(revised.dropped)
    return revised.document


def _say_dropped(values: Tree) -> None:
    """Tells which values had to go, by their dotted names."""
    if values:
        say("dropped by these changes:", ", ".join(f"{field} = {value!r}" for field, value in values.items()))


def changes(assignments: Sequence[str], unset: Sequence[str] = (), *, absolute_paths: bool = True) -> Tree:
    """``--set`` and ``--unset`` as one JSON Merge Patch."""
    patch = assigned(assignments, absolute_paths=absolute_paths)
    merge(patch, removed(unset))
    return patch


def assigned(assignments: Sequence[str], *, absolute_paths: bool = True) -> Tree:
    """The texts ``a.b=value`` as one tree, the later winning; variables and paths as in :func:`load`."""
    over: Tree = {}
    for assignment in assignments:
        merge(over, _assignment(assignment))
    over = _expand(over)
    _require_variables(over)
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
        raise _invalid(field_errors(error, model=ExperimentSpec), source) from error


def _invalid(errors: FieldErrors, source: str) -> FerretError:
    count = len(errors.told) + errors.omitted
    if count == 1:
        return FerretError("spec.invalid", f"{source}: {errors.told[0]}", errors)
    return FerretError("spec.invalid", f"{source}: {count} values are missing or wrong", errors)


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
    """``tree`` with the environment variables put in; those that are not set stay as they are written."""
    return _map_texts(tree, lambda _, text: _VARIABLE.sub(lambda match: os.environ.get(match[1], match[0]), text))


def _require_variables(tree: Tree) -> None:
    """``spec.invalid`` with every text that still has a variable in it."""
    missing: list[FieldError] = []

    def note(field: str, text: str) -> str:
        if names := [name for name in _VARIABLE.findall(text) if name not in os.environ]:
            message = f"set the environment variable {' and '.join(names)}, or replace the value with --set {field}=…"
            missing.append(FieldError(field=field, value=text, message=message))
        return text

    _map_texts(tree, note)
    if missing:
        raise _invalid(FieldErrors(missing), "the specification")


def _absolute(tree: Tree, folders: Sequence[Path]) -> Tree:
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
