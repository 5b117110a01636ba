"""A table or figure of the paper as runs: rows, columns, quantities, and panels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ferret_bench.reproduce.reruns.quantity import Quantity
from ferret_core.protocol.spec_file import Tree

AT_THE_END: Tree = {"every": 1_000_000}
"""Evaluates only the base model and the last round, which are always evaluated."""


class Variant(NamedTuple):
    """A variant of a row: its label, and its part of a specification."""

    label: str
    part: Tree


class Panel(NamedTuple):
    """One set of axes: ``y`` against the round, or against another quantity of the whole run.

    ``joined``: a line connects the variants of a row, as they differ in one thing alone.
    """

    title: str
    y: Quantity
    x: Quantity | None = None
    logarithmic: bool = False
    joined: bool = True


@dataclass(frozen=True)
class Study:
    """``rows`` are names in ``rows.toml``. A row with an algorithm in ``variants`` appears once per variant.

    The variant's part of a specification overrides it; ``parts`` overrides all. A table has no panels, and so no
    picture.
    """

    title: str
    lead: str
    rows: tuple[str, ...]
    datasets: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    panels: tuple[Panel, ...] = ()
    parts: Tree = field(default_factory=dict[str, Any])
    variants: Mapping[str, Mapping[str, Variant]] = field(default_factory=dict[str, Mapping[str, Variant]])
    seeds: int = 4
    reference: str | None = None
    """The row that all others are compared with, seed by seed: its page has the differences with their intervals."""
    candidates: str = "candidates.toml"
    """The file of the candidates of `ferret paper tune` for every row, next to the module that reads it."""
