"""A study's figures as sheets, one per dataset: ours and the paper's side by side, as they are shown everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from ferret_cli.paper.reruns.grid import Column
from ferret_cli.paper.reruns.quantity import Quantity
from ferret_cli.paper.reruns.results import Printed, Results, Spread
from ferret_cli.paper.reruns.settings import Row
from ferret_cli.paper.reruns.study import Study

Mark = Literal["", "best", "second", "failed", "empty"]
EMPTY = "–"
MOST_COLUMNS = 8
"""As many as a page shows without scrolling."""


class Entry(NamedTuple):
    """What stands in a place: a mean, its deviation ("" if there is none), and whether it is among the best."""

    mean: str
    std: str = ""
    mark: Mark = ""


class Head(NamedTuple):
    """A column's name. ``group`` is the model; ``ours`` tells our figures from the paper's."""

    group: str
    label: str
    ours: bool


class Line(NamedTuple):
    """A row; ``apart`` if another kind of algorithm begins with it."""

    label: str
    entries: list[Entry]
    apart: bool


class Sheet(NamedTuple):
    """A dataset's table; without a title where it goes on from the one before."""

    title: str
    heads: list[Head]
    lines: list[Line]


class _Column(NamedTuple):
    head: Head
    quantity: Quantity
    value: Callable[[Row], Spread | None]
    failed: Callable[[Row], int]


def sheets(study: Study, results: Results, paper: Printed) -> list[Sheet]:
    """One per dataset, with the rows that were run on it; several where there are many columns."""
    titles = {column.dataset: column.title for column in results.grid.columns}
    whole = [_sheet(study, results, paper, dataset, title) for dataset, title in titles.items()]
    return [part for sheet in whole for part in _folded(sheet)]


def _folded(sheet: Sheet) -> Iterator[Sheet]:
    """The same in parts of at most so many columns, a model's never parted; the first has the title."""
    begin, end = 0, 0
    for _, group in groupby(sheet.heads, key=lambda head: (head.group, head.ours)):
        count = len(list(group))
        if end > begin and end + count - begin > MOST_COLUMNS:
            yield _part(sheet, begin, end)
            begin = end
        end += count
    yield _part(sheet, begin, end)


def _part(sheet: Sheet, begin: int, end: int) -> Sheet:
    lines = [line._replace(entries=line.entries[begin:end]) for line in sheet.lines]
    return Sheet("" if begin else sheet.title, sheet.heads[begin:end], lines)


def _sheet(study: Study, results: Results, paper: Printed, dataset: str, title: str) -> Sheet:
    here = [column for column in results.grid.columns if column.dataset == dataset]
    rows = [row for row in results.grid.rows if any(results.cells(row, column) for column in here)]
    columns = [*_shown(_ours(study, results, dataset), rows), *_shown(_papers(study, paper, dataset), rows)]
    entries = [_entries(column, rows if column.head.ours else _first_printed(rows), rows) for column in columns]
    return Sheet(title, [column.head for column in columns], _lines(rows, entries))


def _shown(columns: Sequence[_Column], rows: Sequence[Row]) -> list[_Column]:
    """Those with a value; where all runs of a model failed, one column that says so."""
    shown: list[_Column] = []
    for _, of in groupby(columns, key=lambda column: column.head.group):
        found = list(of)
        measured = [column for column in found if any(column.value(row) for row in rows)]
        shown += measured or [column for column in found[:1] if any(column.failed(row) for row in rows)]
    return shown


def _lines(rows: Sequence[Row], entries: Sequence[Sequence[Entry]]) -> list[Line]:
    return [
        Line(row.label, [found[place] for found in entries], place > 0 and rows[place - 1].group != row.group)
        for place, row in enumerate(rows)
    ]


def _ours(study: Study, results: Results, dataset: str) -> list[_Column]:
    """Every quantity of every model."""
    return [
        _our(results, column, quantity)
        for column in results.grid.columns
        if column.dataset == dataset
        for quantity in study.quantities
    ]


def _our(results: Results, column: Column, quantity: Quantity) -> _Column:
    def value(row: Row) -> Spread | None:
        return results.value(row, column, quantity)

    def failed(row: Row) -> int:
        return results.failed(row, column)

    return _Column(Head(column.model, quantity.label, ours=True), quantity, value, failed)


def _papers(study: Study, paper: Printed, dataset: str) -> list[_Column]:
    """Those quantities of its models that it prints."""
    return [
        _paper(paper, dataset, model, quantity)
        for model in paper.models(dataset)
        for quantity in study.quantities
        if paper.has(quantity.name, dataset, model)
    ]


def _paper(paper: Printed, dataset: str, model: str, quantity: Quantity) -> _Column:
    def value(row: Row) -> Spread | None:
        return paper.value(quantity.name, dataset, model, row)

    def failed(row: Row) -> int:
        return 0

    return _Column(Head(model, quantity.label, ours=False), quantity, value, failed)


def _first_printed(rows: Sequence[Row]) -> list[Row]:
    """The paper prints an algorithm once: its figures stand beside the first of the rows that run it."""
    return list({row.printed: row for row in reversed(rows)}.values())


def _entries(column: _Column, filled: Sequence[Row], rows: Sequence[Row]) -> list[Entry]:
    """The column from top to bottom, its best and second best marked; a dash for rows that are not ``filled``."""
    values = [column.value(row) if row in filled else None for row in rows]
    marks = _marks([None if value is None else value.mean for value in values], column.quantity)
    return [
        _entry(value, column.quantity, mark, column.failed(row))
        for value, mark, row in zip(values, marks, rows, strict=True)
    ]


def _entry(value: Spread | None, quantity: Quantity, mark: Mark, failed: int) -> Entry:
    if value is None:
        return Entry("failed", mark="failed") if failed else Entry(EMPTY, mark="empty")
    return Entry(quantity.show(value.mean), _deviation(value, quantity), mark)


def _deviation(value: Spread, quantity: Quantity) -> str:
    """Nothing for a cost whose last digit does not feel it."""
    if value.std is None:
        return ""
    unseen = quantity.better == "either" and quantity.show(value.mean + value.std) == quantity.show(value.mean)
    return "" if unseen else quantity.show(value.std)


def _marks(means: Sequence[float | None], quantity: Quantity) -> list[Mark]:
    """Best and second best, as the paper marks scores; ties share a mark."""
    if quantity.better == "either":
        return [""] * len(means)
    order = sorted({mean for mean in means if mean is not None}, reverse=quantity.better == "high")
    marks: dict[float, Mark] = dict(zip(order[:2], ("best", "second"), strict=False)) if len(order) > 1 else {}
    return [marks.get(mean, "") if mean is not None else "" for mean in means]
