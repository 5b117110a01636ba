"""A search space: a part of a specification, a tree of tables, in which some values are dimensions.

The syntax in ``[tune]``: ``{ log = [1e-5, 1e-2] }``, ``{ uniform = [0.0, 1.0] }``, ``{ int = [1, 8] }`` and ``{ log_int
= [1, 64] }`` are ranges. ``{ choice = [1, 2] }`` is one of several values, which may be tables with further dimensions;
``{ choice = { a = {…}, b = {…} } }`` names them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, cast

from ferret_cli.tune.settings import MOST_TRIALS
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec_file import Tree

BETWEEN = 0.618
"""A position inside a range that is not a round number: fields that accept only whole numbers refuse it."""

_LABEL = re.compile(r"\[[^\]]*\]")
_DOT = re.compile(r"\.(?![^\[]*\])")
"""Separator of the parts of a name; labels, in brackets, are not split."""

Values = dict[str, Any]
"""A drawn point, by the name of the dimension: a number, or the label of a choice."""


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; a grid tries ``points`` of them, evenly spread."""

    low: float
    high: float
    log: bool
    whole: bool
    points: int | None

    def at(self, share: float) -> float:
        """Returns the number at ``share`` of the way from ``low`` to ``high``."""
        if share in (0, 1):
            return self.high if share else self.low
        value = self.low + share * (self.high - self.low)
        if self.log:
            value = min(self.low * (self.high / self.low) ** share, self.high)
        return round(value) if self.whole else value

    def grid(self) -> Sequence[float]:
        """Returns ``points`` or else all whole numbers; none for a continuous range without ``points``."""
        if self.points is None:
            return range(round(self.low), round(self.high) + 1) if self.whole else ()
        return list(dict.fromkeys(self.at(place / (self.points - 1)) for place in range(self.points)))


@dataclass(frozen=True)
class Choice:
    """One of several parts of a specification, by label; None is a value left out."""

    options: Mapping[str, Any]


Dimension = Range | Choice
Draw = Callable[[str, Dimension], Any]
"""Draws a dimension by its name: a number of a range, the label of a choice."""


def drawn(space: Any, draw: Draw, name: str = "") -> Any:
    """Returns the space's part of a specification, with each dimension set by ``draw``.

    A dimension's name is its dotted path; below a choice the label is in brackets: ``algorithm.local[sgd].momentum``.
    """
    match space:
        case Range():
            return draw(name, space)
        case Choice():
            label = draw(name, space)
            return drawn(space.options[label], draw, f"{name}[{label}]")
        case dict():
            below = cast(Tree, space).items()
            return {key: drawn(value, draw, f"{name}.{key}" if name else key) for key, value in below}
        case _:
            return space


def dimensions(space: Any, name: str = "") -> dict[str, Dimension]:
    """Returns all dimensions by name, in the order of their declaration."""
    match space:
        case Range():
            return {name: space}
        case Choice():
            below = [(f"{name}[{label}]", option) for label, option in space.options.items()]
            return {name: space, **_of_all(below)}
        case dict():
            return _of_all((f"{name}.{key}" if name else key, value) for key, value in cast(Tree, space).items())
        case _:
            return {}


def field_of(name: str) -> str:
    """Returns the field of the specification that a dimension sets, without the choices above it."""
    return _LABEL.sub("", name)


def short_names(names: Iterable[str]) -> list[str]:
    """Returns the shortest suffix of each dimension's name that distinguishes it."""
    parts = [_DOT.split(name) for name in names]
    return [_shortest(name, [other for other in parts if other != name]) for name in parts]


def corners(space: Any) -> Iterator[Any]:
    """Yields parts of a specification that cover every end, inside and option of every dimension at least once.

    One dimension at a time leaves its first value.
    """
    match space:
        case Range():
            yield from (space.at(share) for share in (0, 1, BETWEEN))
        case Choice():
            yield from chain.from_iterable(map(corners, space.options.values()))
        case dict():
            below = {key: list(corners(value)) for key, value in cast(Tree, space).items()}
            first = {key: found[0] for key, found in below.items()}
            yield first
            yield from ({**first, key: other} for key, found in below.items() for other in found[1:])
        case _:
            yield space


def size(space: Any) -> int:
    """Returns the number of combinations that :func:`grid` makes."""
    match space:
        case Range():
            return len(space.grid())
        case Choice():
            return sum(map(size, space.options.values()))
        case dict():
            return math.prod(map(size, cast(Tree, space).values()))
        case _:
            return 1


def grid(space: Any, name: str = "") -> Iterator[Values]:
    """Yields every combination of the dimensions' points, the last dimension changing fastest."""
    match space:
        case Range():
            yield from ({name: value} for value in space.grid())
        case Choice():
            for label, option in space.options.items():
                yield from ({name: label, **rest} for rest in grid(option, f"{name}[{label}]"))
        case dict():
            below = [list(grid(value, f"{name}.{key}" if name else key)) for key, value in cast(Tree, space).items()]
            yield from ({key: value for part in parts for key, value in part.items()} for parts in product(*below))
        case _:
            yield {}


def _of_all(spaces: Iterable[tuple[str, Any]]) -> dict[str, Dimension]:
    return {name: dimension for path, space in spaces for name, dimension in dimensions(space, path).items()}


def _shortest(name: Sequence[str], others: Sequence[Sequence[str]]) -> str:
    counts = range(1, len(name))
    enough = (count for count in counts if all(other[-count:] != name[-count:] for other in others))
    return ".".join(name[-next(enough, len(name)) :])


RANGES = {"log": (True, False), "uniform": (False, False), "int": (False, True), "log_int": (True, True)}
"""By kind: True for a logarithmic range, and True for whole numbers."""
CHOICE, UNSET, POINTS = "choice", "unset", "points"
FORMS = "{ log = [1e-5, 1e-2] }, { uniform = [0.0, 1.0] }, { int = [1, 8] }, { log_int = [1, 64] }, { choice = [1, 2] }"
_NO_BRACKETS = str.maketrans("[]", "()")
"""Translation of brackets inside labels, because names enclose labels in brackets."""


def parsed(table: Tree, path: str) -> Tree:
    """Reads the space in the TOML table ``path``; raises ``spec.invalid`` about the first invalid dimension."""
    return {name: _parsed(value, f"{path}.{name}", bare=False) for name, value in table.items()}


def _parsed(value: Any, path: str, *, bare: bool) -> Any:
    """Reads a table; ``bare`` values, which belong to an option of a choice, may appear next to dimensions."""
    if not isinstance(value, dict):
        if bare:
            return value
        raise _wrong(path, value, f"is not a range: write one of {FORMS}")
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
        message = f"must be above 0, as factors do: use {'int' if whole else 'uniform'}, or another lower end"
        raise _wrong(f"{path}.{kind}", [low, high], message)
    points = table.get(POINTS)
    if points is not None and (type(points) is not int or not 2 <= points <= MOST_TRIALS):
        raise _wrong(f"{path}.{POINTS}", points, f"is not a number of points: give 2 to {MOST_TRIALS}")
    return Range(low, high, log, whole, points)


def _ends(ends: Any, field: str, *, whole: bool) -> tuple[float, float]:
    allowed = (int,) if whole else (int, float)
    given = cast(Sequence[Any], ends) if isinstance(ends, list) else ()
    if len(given) != 2 or not all(type(end) in allowed and math.isfinite(end) for end in given):
        raise _wrong(field, ends, f"is not a range: give its two ends, {'whole ' if whole else ''}numbers")
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
        raise _wrong(field, given, "is not a choice: give an array of values, or a table that names them")
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
    """Returns the option's label; a table is labelled by its plain values."""
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
        message = f"cannot be combined with {', '.join(sorted(known & table.keys()))}: take it out"
        raise _wrong(f"{path}.{other[0]}", table[other[0]], message)


def _wrong(field: str, value: Any, message: str) -> FerretError:
    return FerretError.of_field("spec.invalid", field, value, message)
