"""A study's figures as Markdown, one table per dataset: each model's rows here, then the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ferret_bench.reproduce.reruns import markdown
from ferret_bench.reproduce.reruns.interval import Interval
from ferret_bench.reproduce.reruns.quantity import BYTES_BOTH, BYTES_UP, Quantity
from ferret_bench.reproduce.reruns.results import Line, Spread

EMPTY = "–"
BEST, SECOND = "**", "*"
DENSE = "fedavg"
"""It sends all weights: other rows' bytes are shown relative to its own."""


def compared(lines: Sequence[Line], quantities: Sequence[Quantity], reference: str) -> str:
    """Renders one dataset's lines compared with one of them.

    The table has means with their 95 % intervals, differences seed by seed, and, if the reference is FedAvg, bytes
    relative to FedAvg's at 16 bits for each of its 32.
    """
    (beside,) = [line for line in lines if line.row.name == reference][:1] or [None]
    scored = [
        quantity
        for quantity in quantities
        if quantity.better is not None and any(line.values[quantity.name] for line in lines)
    ]
    plain = [quantity for quantity in quantities if quantity.better is None]
    heads = ["Algorithm", *(quantity.label for quantity in plain)]
    shares = (BYTES_UP, BYTES_BOTH) if reference == DENSE else ()
    if beside is not None:
        heads += [f"{quantity.label}, of 16-bit {beside.row.label}" for quantity in shares]
    for quantity in scored:
        heads += [quantity.label, *([f"to {beside.row.label}, %"] if beside is not None else [])]
    rows: list[list[str]] = []
    for line in lines:
        cells = [_shown(line.values[quantity.name], quantity) for quantity in plain]
        if beside is not None:
            cells += [_share(line, beside, quantity) for quantity in shares]
        for quantity in scored:
            cells.append(_within(line, quantity))
            if beside is not None:
                cells.append(_difference(line.differences.get(quantity.name)))
        rows.append([line.row.label, *cells, str(line.seeds)])
    return markdown.table([*heads, "Runs"], rows, left=1)


def _shown(value: Spread | None, quantity: Quantity) -> str:
    return EMPTY if value is None else quantity.show(value.mean)


def _within(line: Line, quantity: Quantity) -> str:
    value, found = line.values[quantity.name], line.intervals.get(quantity.name)
    if value is None:
        return "failed" if line.failed else EMPTY
    return quantity.show(value.mean) + (f" ± {quantity.show(found.half)}" if found else "")


def _difference(found: Interval | None) -> str:
    """Formats the difference, bold if zero is outside the interval."""
    if found is None:
        return EMPTY
    mark = BEST if found.decided else ""
    return f"{mark}{found.mean:+.1f} ± {found.half:.1f}{mark}"


def _share(line: Line, beside: Line, quantity: Quantity) -> str:
    ours, theirs = line.values.get(quantity.name), beside.values.get(quantity.name)
    if ours is None or theirs is None:
        return EMPTY
    share = ours.mean / (theirs.mean / 2)
    return f"1/{1 / share:,.0f}" if share < 0.5 else f"{share:.2g}"


def table(lines: Sequence[Line], quantities: Sequence[Quantity]) -> str:
    """The lines of one dataset. In each model's part the best mean is bold and the second best is in italics."""
    shown = [quantity for quantity in quantities if any(line.values[quantity.name] for line in lines)]
    shown = shown or list(quantities[:1])
    heads = ["Algorithm", "Model", *(quantity.label for quantity in shown), "Runs"]
    parts = [list(part) for _, part in groupby(lines, key=lambda line: (line.source, line.model))]
    return markdown.table(heads, [row for part in parts for row in _part(part, shown)], left=2)


def _part(lines: Sequence[Line], quantities: Sequence[Quantity]) -> list[list[str]]:
    """The rows of one model, here or in the paper."""
    columns = [_column(lines, quantity) for quantity in quantities]
    return [
        [
            line.row.label,
            markdown.plain(line.model) + (", paper" if line.source == "paper" else ""),
            *(column[place] for column in columns),
            EMPTY if line.seeds is None else str(line.seeds),
        ]
        for place, line in enumerate(lines)
    ]


def _column(lines: Sequence[Line], quantity: Quantity) -> list[str]:
    values = [line.values[quantity.name] for line in lines]
    means = {value.mean for value in values if value is not None}
    marks: dict[float, str] = {}
    if quantity.better is not None and len(means) > 1:
        order = sorted(means, reverse=quantity.better == "high")
        marks = dict(zip(order[:2], (BEST, SECOND), strict=True))
    return [
        _cell(value, quantity, marks) if value else "failed" if line.failed else EMPTY
        for line, value in zip(lines, values, strict=True)
    ]


def _cell(value: Spread, quantity: Quantity, marks: dict[float, str]) -> str:
    mark, mean = marks.get(value.mean, ""), quantity.show(value.mean)
    return f"{mark}{mean}{mark}" + (f" ± {deviation}" if (deviation := _deviation(value, quantity)) else "")


def _deviation(value: Spread, quantity: Quantity) -> str:
    """Formats the deviation; empty for a cost if it does not change the shown digits."""
    if value.std is None:
        return ""
    unseen = quantity.better is None and quantity.show(value.mean + value.std) == quantity.show(value.mean)
    return "" if unseen else quantity.show(value.std)
