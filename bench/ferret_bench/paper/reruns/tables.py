"""A study's figures as Markdown, one table per dataset: each model's rows here, then the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ferret_bench.paper.reruns import markdown
from ferret_bench.paper.reruns.quantity import Quantity
from ferret_bench.paper.reruns.results import Line, Spread

EMPTY = "–"
BEST, SECOND = "**", "*"


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
    """Nothing for a cost whose shown digits it does not change."""
    if value.std is None:
        return ""
    unseen = quantity.better is None and quantity.show(value.mean + value.std) == quantity.show(value.mean)
    return "" if unseen else quantity.show(value.std)
