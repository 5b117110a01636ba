"""A table or figure of the paper as runs: rows by columns, what is read from each, and how it is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ferret_bench.paper.reruns.quantity import Quantity
from ferret_core.protocol.spec_file import Tree

AT_THE_END: Tree = {"every": 1_000_000}
"""Evaluates the base model and the last round alone, which are always evaluated."""


class Variant(NamedTuple):
    """A row run in another way: how it is called, and its part of a specification."""

    label: str
    part: Tree


class Panel(NamedTuple):
    """One set of axes: ``y`` against the round, or against what another quantity says of the whole run.

    ``joined``: a line leads through the variants of a row, as they differ in one thing alone.
    """

    title: str
    y: Quantity
    x: Quantity | None = None
    logarithmic: bool = False
    joined: bool = True


@dataclass(frozen=True)
class Study:
    """``rows`` are names in ``rows.toml``. A row whose algorithm has ``variants`` comes once per variant, whose part of
    a specification is laid over it; ``parts`` is laid over all. A table has no panels, and so no picture."""

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
    """The row that all others are held against, seed by seed: its page tells the differences with their intervals."""
    candidates: str = "candidates.toml"
    """The file of what `ferret paper tune` tries on every row, beside the module that reads it."""
