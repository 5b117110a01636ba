"""Finds tables and figures by file name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ferret_core import discovery
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from ferret_bench.reproduce.reruns.study import Study

Kind = Literal["table", "figure"]

PACKAGES: dict[Kind, str] = {"table": "ferret_bench.reproduce.tables", "figure": "ferret_bench.reproduce.curves"}


def names(kind: Kind) -> list[str]:
    return discovery.names(PACKAGES[kind])


def study(kind: Kind, name: str) -> Study:
    """Returns the table or figure with this name. ``request.invalid`` lists the existing names."""
    if name not in names(kind):
        raise FerretError.of_field("request.invalid", "NAME", name, f"unknown; choose one of {', '.join(names(kind))}")
    return discovery.load(PACKAGES[kind], name, "NAME").STUDY


def kind_of(name: str) -> Kind:
    """Returns the kind of this study, table or figure. ``request.invalid`` lists the existing names."""
    for kind in PACKAGES:
        if name in names(kind):
            return kind
    known = ", ".join(name for kind in PACKAGES for name in names(kind))
    raise FerretError.of_field("request.invalid", "NAME", name, f"unknown; choose one of {known}")
