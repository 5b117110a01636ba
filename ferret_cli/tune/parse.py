"""Reads a search space as it stands in ``[tune]``.

``{ log = [1e-5, 1e-2] }``, ``{ uniform = [0.0, 1.0] }``, ``{ int = [1, 8] }`` and ``{ log_int = [1, 64] }`` are ranges.
``{ choice = [1, 2] }`` is one of several values, which may be tables with dimensions of their own;
``{ choice = { a = {…}, b = {…} } }`` names them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from ferret_cli.tune.settings import MOST_TRIALS
from ferret_cli.tune.space import Choice, Range
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec_file import Tree

RANGES = {"log": (True, False), "uniform": (False, False), "int": (False, True), "log_int": (True, True)}
"""By kind: whether it spans factors rather than steps, and whether its values are whole."""
CHOICE, UNSET, POINTS = "choice", "unset", "points"
FORMS = "{ log = [1e-5, 1e-2] }, { uniform = [0.0, 1.0] }, { int = [1, 8] }, { log_int = [1, 64] }, { choice = [1, 2] }"
_NO_BRACKETS = str.maketrans("[]", "()")
"""They stand around labels."""


def parsed(table: Tree, path: str) -> Tree:
    """The space that stands in the TOML table ``path``; ``spec.invalid`` about the first dimension that is none."""
    return {name: _parsed(value, f"{path}.{name}", bare=False) for name, value in table.items()}


def _parsed(value: Any, path: str, *, bare: bool) -> Any:
    """``bare`` values, which belong to an option of a choice, may stand beside dimensions."""
    if not isinstance(value, dict):
        if bare:
            return value
        raise _wrong(path, value, f"is no range: write one of {FORMS}")
    table = cast(Tree, value)
    kinds = [kind for kind in (*RANGES, CHOICE) if kind in table]
    if not kinds:
        return {name: _parsed(below, f"{path}.{name}", bare=bare) for name, below in table.items()}
    if len(kinds) > 1:
        raise _wrong(path, table, f"is both {' and '.join(kinds)}: keep one")
    return _choice(table, path) if kinds == [CHOICE] else _range(kinds[0], table, path)


def _range(kind: str, table: Tree, path: str) -> Range:
    log, whole = RANGES[kind]
    _only(table, {kind, POINTS}, path)
    low, high = _ends(table[kind], f"{path}.{kind}", whole=whole)
    if log and low <= 0:
        message = f"must lie above 0, as factors do: use {'int' if whole else 'uniform'}, or another lower end"
        raise _wrong(f"{path}.{kind}", [low, high], message)
    points = table.get(POINTS)
    if points is not None and (type(points) is not int or not 2 <= points <= MOST_TRIALS):
        raise _wrong(f"{path}.{POINTS}", points, f"is no number of points: give 2 to {MOST_TRIALS}")
    return Range(low, high, log, whole, points)


def _ends(ends: Any, field: str, *, whole: bool) -> tuple[float, float]:
    allowed = (int,) if whole else (int, float)
    given = cast(Sequence[Any], ends) if isinstance(ends, list) else ()
    if len(given) != 2 or not all(type(end) in allowed and math.isfinite(end) for end in given):
        raise _wrong(field, ends, f"is no range: give its two ends, {'whole ' if whole else ''}numbers")
    low, high = given
    if low == high:
        raise _wrong(field, ends, "is an empty range: give two different ends, or set the value itself")
    if low > high:
        raise _wrong(field, ends, f"is inverted: the lower end comes first, [{high}, {low}]")
    return (low, high) if whole else (float(low), float(high))


def _choice(table: Tree, path: str) -> Choice:
    _only(table, {CHOICE, UNSET}, path)
    field, given = f"{path}.{CHOICE}", table[CHOICE]
    if not isinstance(given, list | dict):
        raise _wrong(field, given, "is no choice: give an array of values, or a table that names them")
    if isinstance(given, dict):
        labelled = list(cast(Tree, given).items())
    else:
        labelled = [(_label(option), option) for option in cast(list[Any], given)]
    if type(unset := table.get(UNSET, False)) is not bool:
        raise _wrong(f"{path}.{UNSET}", unset, "is neither true, which adds the value's own default, nor false")
    if unset:
        labelled.append((UNSET, None))
    if len(labelled) < 2:
        raise _wrong(field, given, "leaves nothing to choose: give two values or more, or set the value itself")
    if twice := {label for label, _ in labelled if sum(label == other for other, _ in labelled) > 1}:
        raise _wrong(field, given, f"has {', '.join(sorted(twice))} twice")
    parts = {label: _parsed(option, f"{field}.{label}", bare=True) for label, option in labelled}
    return Choice({label.translate(_NO_BRACKETS): part for label, part in parts.items()})


def _label(option: Any) -> str:
    """The option as it is told apart from the others; a table by its plain values."""
    match option:
        case str():
            return option
        case bool():
            return str(option).lower()
        case dict():
            plain = [(key, value) for key, value in cast(Tree, option).items() if not isinstance(value, dict)]
            return ", ".join(f"{key} = {_label(value)}" for key, value in plain)
        case [*items]:
            return f"[{', '.join(map(_label, items))}]"
        case _:
            return str(option)


def _only(table: Tree, known: set[str], path: str) -> None:
    if other := sorted(table.keys() - known):
        message = f"does not belong beside {', '.join(sorted(known & table.keys()))}: take it out"
        raise _wrong(f"{path}.{other[0]}", table[other[0]], message)


def _wrong(field: str, value: Any, message: str) -> FerretError:
    return FerretError.of_field("spec.invalid", field, value, message)
