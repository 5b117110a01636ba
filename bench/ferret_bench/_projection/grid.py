"""The grid: every way, size, K and number of contributions that memory and time allow, each compared with a copy.

Before a cell is measured its cost is estimated from the last one of its way and operation. Cells that would take too
long or do not fit are left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import torch

from ferret_bench._projection.implementations import WEIGHT_BYTES, Cell, Vectors, Way, ways
from ferret_bench.base import Say
from ferret_bench.measure.clock import Action, Turns, in_turns
from ferret_bench.measure.memory import extra_bytes, short_of

UNTIMED = 2
"""Calls per cell that are not timed: one measures memory, one warms up."""
SHARE = 1 / 30
"""Maximum share of the whole time for one cell."""
PROBE_ELEMENTS, PROBE_K = 1 << 16, 16


class Sizes(NamedTuple):
    """Elements d, coordinates K and contributions N: every combination with K ≤ d is a cell, timed by ``turns``.

    The smallest K is about what the paper gives a block: there the naive way can be measured, too.
    """

    elements: Sequence[int] = (10**6, 10**7, 10**8, 10**9)
    K: Sequence[int] = (16, 10**3, 10**4, 10**5, 10**6)
    contributions: Sequence[int] = (1, 10, 100)
    turns: Turns = Turns(least=3, most=9, seconds=0.5)


def measure(sizes: Sizes, device: torch.device, max_seconds: float, say: Say) -> dict[str, Any]:
    """Returns ``copy``: the yardstick for each d; ``cells``: the measurements; ``skipped``: the others, with
    reasons.
    """
    found = _Grid(sizes, device, max_seconds, say)
    for elements in sizes.elements:
        found.measure(elements)
    _add_speedups(found.cells)
    return {"device": device.type, "copy": found.copies, "cells": found.cells, "skipped": found.skipped}


class _Grid:
    """The measurements so far, their pace, and the remaining time."""

    def __init__(self, sizes: Sizes, device: torch.device, max_seconds: float, say: Say) -> None:
        self.sizes, self.device, self.say = sizes, device, say
        self.limit, self.deadline = SHARE * max_seconds, perf_counter() + max_seconds
        self.copies: list[dict[str, Any]] = []
        self.cells: list[dict[str, Any]] = []
        self.skipped: list[dict[str, Any]] = []
        self.pace = {name: pace for way in ways() for name, pace in _probe(way, device).items()}
        """Seconds per unit of work of each way and operation, as last measured."""

    def measure(self, elements: int) -> None:
        """Measures all cells of blocks with ``elements`` elements."""
        cells = list(_cells(self.sizes, elements))
        if reason := short_of(3 * elements * WEIGHT_BYTES, self.device):
            self.skipped += [cell.to_json() | {"reason": reason} for cell in cells]
            return
        vectors = Vectors.random(elements, self.device)
        copy = partial(torch.empty_like(vectors.before).copy_, vectors.before)
        taken = in_turns({"copy": copy}, self.device).median("copy")
        self.copies.append({"d": elements, "seconds": taken, "gb_per_s": 2 * WEIGHT_BYTES * elements / taken / 1e9})
        for cell in cells:
            if reason := short_of(cell.scratch_bytes, self.device) or self._too_long(cell):
                self.skipped.append(cell.to_json() | {"reason": reason})
                continue
            measured = _measure(cell, vectors, copy, self.device, self.sizes.turns)
            self.pace[cell.way.name, cell.operation] = measured["seconds"] / cell.work
            self.cells.append(measured)
            self.say(_line(measured))

    def _too_long(self, cell: Cell) -> str | None:
        calls = UNTIMED + self.sizes.turns.least
        estimate = calls * self.pace[cell.way.name, cell.operation] * cell.work
        left = max(self.deadline - perf_counter(), 0)
        if estimate > self.limit:
            return f"would take about {estimate:.3g} s; a cell may take {self.limit:.3g} s, a part of --max-seconds"
        if estimate > left:
            return f"would take about {estimate:.3g} s; {left:.3g} s of --max-seconds are left"
        return None


def _cells(sizes: Sizes, elements: int) -> Iterator[Cell]:
    for K in [count for count in sizes.K if count <= elements]:
        for way in ways():
            yield Cell(way, "project", elements, K, 1)
            yield from (Cell(way, "apply", elements, K, N) for N in sizes.contributions)


def _probe(way: Way, device: torch.device) -> dict[tuple[str, str], float]:
    """Returns seconds per unit of work of both operations on a small block. Compiles code."""
    vectors = Vectors.random(PROBE_ELEMENTS, device)
    cells = [Cell(way, operation, PROBE_ELEMENTS, PROBE_K, 1) for operation in ("project", "apply")]
    timings = in_turns({cell.operation: vectors.action(cell) for cell in cells}, device, Turns(3, 3))
    return {(way.name, cell.operation): timings.median(cell.operation) / cell.work for cell in cells}


def _measure(cell: Cell, vectors: Vectors, copy: Action, device: torch.device, turns: Turns) -> dict[str, Any]:
    action = vectors.action(cell)
    extra = extra_bytes(action, device)
    timings = in_turns({"cell": action, "copy": copy}, device, turns)
    taken = timings.median("cell")
    return cell.to_json() | {
        "kernel": cell.way.kernel(device),
        "seconds": taken,
        "repetitions": len(timings.seconds["cell"]),
        "ns_per_element": taken / cell.elements * 1e9,
        "ns_per_entry": taken / (cell.elements * cell.K * cell.contributions) * 1e9,
        "bytes_per_element": cell.bytes_per_element,
        "gb_per_s": cell.bytes_per_element * cell.elements / taken / 1e9,
        "extra_memory_mb": None if extra is None else extra / 1e6,
        "times_copy": timings.ratio("cell", "copy"),
    }


def _add_speedups(cells: list[dict[str, Any]]) -> None:
    """Adds ``speedup``: the naive way's time over the cell's, None where the naive way was not measured."""

    def key(cell: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(cell[name] for name in ("operation", "d", "K", "N"))

    naive = {key(cell): cell["seconds"] for cell in cells if cell["way"] == "naive"}
    for cell in cells:
        cell["speedup"] = naive[key(cell)] / cell["seconds"] if key(cell) in naive else None


def _line(cell: dict[str, Any]) -> str:
    sizes = f"d = {cell['d']:,}, K = {cell['K']:,}, N = {cell['N']}"
    return f"{cell['way']} {cell['operation']}, {sizes}: {cell['ns_per_element']:.3g} ns per element"
