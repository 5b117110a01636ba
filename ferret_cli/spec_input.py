"""Reads an experiment's TOML or JSON: environment variables, paths and ``--set`` included."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from ferret_cli.output import say
from ferret_core.experiment import presets
from ferret_core.experiment.spec_patch import revise
from ferret_core.protocol import spec_file
from ferret_core.protocol.errors import FerretError, FieldError, FieldErrors
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.spec_file import Tree


def load(
    file: Path | None,
    assignments: Sequence[str] = (),
    unset: Sequence[str] = (),
    preset: str | None = None,
    *,
    absolute_paths: bool = True,
) -> ExperimentSpec:
    """Reads the specification in ``file``, or an empty one, changed as in :func:`document`. Raises ``spec.invalid``."""
    tree = document(file, assignments, unset, preset, absolute_paths=absolute_paths)
    if "tune" in tree:
        message = f"is a search space: `ferret tune {file}` searches it, --unset tune leaves it out"
        raise FerretError.of_field("spec.invalid", "tune", ", ".join(tree["tune"]), message)
    return ExperimentSpec.read(tree, str(file or "the specification"))


def document(
    file: Path | None,
    assignments: Sequence[str] = (),
    unset: Sequence[str] = (),
    preset: str | None = None,
    *,
    absolute_paths: bool = True,
) -> Tree:
    """Returns the content of ``file``, changed by the ``preset``, then by each ``a.b=value`` of ``assignments`` and
    each ``a.b`` of ``unset``.

    :func:`ferret_core.experiment.spec_patch.revise` describes further effects of a change; dropped values are reported
    on stderr. ``${NAME}`` in a text is replaced by the environment variable; only texts that remain after the changes
    need their variables. With ``absolute_paths``, for a server or worker on this machine, a relative path that exists
    next to the file or in the working folder is made absolute; a path of ``assignments`` is searched in the working
    folder alone. Raises ``spec.invalid`` for unreadable input.
    """
    tree = spec_file.expand(spec_file.read(file)) if file else {}
    if file and absolute_paths:
        tree = spec_file.absolute(tree, [file.resolve().parent, Path.cwd()])
    if preset is not None:
        beginning = presets.apply_preset(tree, preset)
        _say_dropped(beginning.dropped)
        tree = beginning.document
    revised = revise(tree, changes(assignments, unset, absolute_paths=absolute_paths))
    _require_variables(revised.document)
    _say_dropped(revised.dropped)
    return revised.document


def _say_dropped(values: Tree) -> None:
    if values:
        say("dropped by these changes:", ", ".join(f"{field} = {value!r}" for field, value in values.items()))


def changes(assignments: Sequence[str], unset: Sequence[str] = (), *, absolute_paths: bool = True) -> Tree:
    """Returns ``--set`` and ``--unset`` as one JSON Merge Patch."""
    patch = assigned(assignments, absolute_paths=absolute_paths)
    merge(patch, removed(unset))
    return patch


def assigned(assignments: Sequence[str], *, absolute_paths: bool = True) -> Tree:
    """Returns the texts ``a.b=value`` as one tree, the later winning; variables and paths as in :func:`load`."""
    over: Tree = {}
    for assignment in assignments:
        merge(over, _assignment(assignment))
    over = spec_file.expand(over)
    _require_variables(over)
    return spec_file.absolute(over, [Path.cwd()]) if absolute_paths else over


def removed(paths: Sequence[str]) -> Tree:
    """Returns the dotted ``paths`` as one tree of nulls, which a JSON Merge Patch removes."""
    tree: Tree = {}
    for path in paths:
        merge(tree, _nested(path, None, "--unset", "a.b"))
    return tree


def _require_variables(tree: Tree) -> None:
    """Raises ``spec.invalid`` with every text that still has a variable in it."""
    missing = [
        FieldError(
            field=field,
            value=text,
            message=f"set the environment variable {' and '.join(names)}, or replace the value with --set {field}=…",
        )
        for field, text, names in spec_file.missing_variables(tree)
    ]
    if missing:
        raise spec_file.invalid(FieldErrors(missing), "the specification")


def _assignment(text: str) -> Tree:
    """Returns ``a.b=value`` nested; a value that is not TOML is taken as text, so paths need no quotes."""
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
    """Merges ``over`` into ``tree``, table by table."""
    for name, value in over.items():
        if isinstance(value, dict) and isinstance(tree.get(name), dict):
            merge(tree[name], cast(Tree, value))
        else:
            tree[name] = value
