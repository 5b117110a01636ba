"""Conclusions from the intervals of a study, as sentences: which row ends lower than which, and which are undecided."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ferret_bench.reproduce.reruns.grid import Column
from ferret_bench.reproduce.reruns.interval import Interval
from ferret_bench.reproduce.reruns.quantity import BYTES_UP, Quantity
from ferret_bench.reproduce.reruns.results import Results
from ferret_bench.reproduce.reruns.settings import OURS, Row

BESIDE = ("lower:", "higher:", "undecided:")
OVER_RIVALS = ("ends lower than", "higher than", "undecided against")


def verdicts(results: Results, column: Column, quantity: Quantity, reference: str) -> Iterator[str]:
    """Yields a sentence on all rows relative to the reference, and one on each of our rows and its rivals that send no
    less.
    """
    rows = [row for row in results.grid.rows if results.runs(row, column)]
    for beside in rows:
        if beside.name == reference:
            gaps = [(row, results.difference(row, beside, column, quantity)) for row in rows if row is not beside]
            if said := _said(gaps, BESIDE):
                yield f"Against {beside.label} {said}."
    for ours in rows:
        if ours.group == OURS:
            rivals = _sending_no_less(results, ours, rows, column)
            gaps = [(row, results.difference(ours, row, column, quantity)) for row in rivals]
            if said := _said(gaps, OVER_RIVALS):
                yield f"{ours.label}, of the rivals that send no less, {said}."


def _sending_no_less(results: Results, ours: Row, rows: Sequence[Row], column: Column) -> list[Row]:
    """Returns the rivals with participants that send at least as many bytes as ours."""
    sent = {row.name: value.mean for row in rows if (value := results.value(row, column, BYTES_UP))}
    return [row for row in rows if row.group != OURS and sent.get(row.name, 0) >= sent.get(ours.name, math.inf)]


def _said(found: Sequence[tuple[Row, Interval | None]], words: tuple[str, str, str]) -> str:
    gaps = [(row, gap) for row, gap in found if gap is not None]
    sorts = (
        [_named(row, gap) for row, gap in gaps if gap.decided and gap.mean < 0],
        [_named(row, gap) for row, gap in gaps if gap.decided and gap.mean > 0],
        [_named(row, gap) for row, gap in gaps if not gap.decided],
    )
    return "; ".join(f"{word} {', '.join(named)}" for word, named in zip(words, sorts, strict=True) if named)


def _named(row: Row, gap: Interval) -> str:
    return f"{row.label} ({gap.mean:+.1f} ± {gap.half:.1f} %)"
