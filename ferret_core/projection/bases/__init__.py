"""The families of random bases, found by file name and named by a letter in specs."""

from __future__ import annotations

from functools import cache

from ferret_core.discovery import load, names
from ferret_core.projection.bases.base import Basis
from ferret_core.protocol.errors import FerretError


@cache
def _families() -> dict[str, Basis]:
    found: list[Basis] = [load(__name__, name, "basis").Basis() for name in names(__name__)]
    return {family.letter: family for family in sorted(found, key=lambda family: family.letter)}


def letters() -> list[str]:
    """The letters of all families, sorted."""
    return list(_families())


def basis(letter: str) -> Basis:
    """Returns the family with this letter; raises ``spec.invalid`` about ``basis`` if it does not exist."""
    if letter not in _families():
        raise FerretError.of_field("spec.invalid", "basis", letter, f"is unknown; choose one of {', '.join(letters())}")
    return _families()[letter]
