"""A search space: a part of a specification, a tree of tables, in which some values are dimensions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, cast

from ferret_core.protocol.spec_file import Tree

BETWEEN = 0.618
"""A place inside a range that is no round number: fields that take only whole ones refuse it."""

_LABEL = re.compile(r"\[[^\]]*\]")
_DOT = re.compile(r"\.(?![^\[]*\])")
"""Between the parts of a name; labels, in brackets, are left whole."""

Values = dict[str, Any]
"""What was drawn, by the name of the dimension: a number, or the label of a choice."""


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; ``points`` of them, evenly spread, are what a grid tries."""

    low: float
    high: float
    log: bool
    whole: bool
    points: int | None

    def at(self, share: float) -> float:
        """The number that lies ``share`` of the way from ``low`` to ``high``."""
        if share in (0, 1):
            return self.high if share else self.low
        value = self.low + share * (self.high - self.low)
        if self.log:
            value = min(self.low * (self.high / self.low) ** share, self.high)
        return round(value) if self.whole else value

    def grid(self) -> Sequence[float]:
        """Every whole number, unless ``points`` says how many; of a range without either, none."""
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
    """The part of a specification that the space is where each dimension is what ``draw`` makes of it.

    A dimension's name is its dotted path; below a choice the label stands in brackets:
    ``algorithm.local[sgd].momentum``.
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
    """All dimensions by name, in the order in which they stand."""
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
    """The field of the specification that a dimension sets, whatever choices it lies below."""
    return _LABEL.sub("", name)


def short_names(names: Iterable[str]) -> list[str]:
    """The last parts of different names of dimensions, as many as tell them apart."""
    parts = [_DOT.split(name) for name in names]
    return [_shortest(name, [other for other in parts if other != name]) for name in parts]


def corners(space: Any) -> Iterator[Any]:
    """Parts of a specification in which every end, inside and option of every dimension comes up at least once.

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
    """The number of combinations that :func:`grid` makes."""
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
    """Every combination of the dimensions' points, the last dimension changing fastest."""
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
