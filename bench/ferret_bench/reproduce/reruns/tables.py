"""A study's results as Markdown: a table per dataset, each model's rows here and then the paper's; conclusions from the
intervals as sentences; and the trials of a search on the validation split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean

from ferret_bench import _markdown
from ferret_bench.measure.statistics import Interval
from ferret_bench.reproduce.reruns.grid import Column
from ferret_bench.reproduce.reruns.quantity import BYTES_BOTH, BYTES_UP, EVAL_LOSS, Quantity
from ferret_bench.reproduce.reruns.records import Record
from ferret_bench.reproduce.reruns.results import TARGET_SHARE, Line, Results, Spread, TimeToTarget
from ferret_bench.reproduce.reruns.settings import OURS, Row
from ferret_core.protocol.formatting import size

EMPTY = "–"
BEST, SECOND = "**", "*"
LINKS = (10, 100)
"""Rates in Mbit/s of a participant's connection."""
DENSE = "fedavg"
"""It sends all weights: other rows' bytes are shown relative to its own."""


def compared(lines: Sequence[Line], quantities: Sequence[Quantity], reference: str) -> str:
    """Renders one dataset's lines compared with one of them.

    The table has the base model as the reference's runs measured it, means with their 95 % intervals, differences seed
    by seed, and, if the reference is FedAvg, bytes relative to FedAvg's at 16 bits for each of its 32.
    """
    (other,) = [line for line in lines if line.row.name == reference][:1] or [None]
    shown = [quantity for quantity in quantities if any(line.values[quantity.name] for line in lines)]
    scored = [quantity for quantity in shown if quantity.better is not None]
    plain = [quantity for quantity in shown if quantity.better is None]
    heads = ["Algorithm", *(quantity.label for quantity in plain)]
    shares = (BYTES_UP, BYTES_BOTH) if reference == DENSE else ()
    if other is not None:
        heads += [f"{quantity.label}, of 16-bit {other.row.label}" for quantity in shares]
    for quantity in scored:
        unit = "" if quantity.absolute else ", %"
        heads += [quantity.label, *([f"to {other.row.label}{unit}"] if other is not None else [])]
    rows = [] if other is None else _base(other, plain, len(shares), scored)
    for line in lines:
        cells = [_shown(line.values[quantity.name], quantity) for quantity in plain]
        if other is not None:
            cells += [_share(line, other, quantity) for quantity in shares]
        for quantity in scored:
            cells.append(_within(line, quantity))
            if other is not None:
                cells.append(_difference(line.differences.get(quantity.name), quantity))
        rows.append([line.row.label, *cells, str(line.seeds)])
    return _markdown.table([*heads, "Runs"], rows, left=1)


def _base(other: Line, plain: Sequence[Quantity], shares: int, scored: Sequence[Quantity]) -> list[list[str]]:
    """Returns the base model's row, none without a measurement before round 1."""
    shown = {
        quantity.name: EMPTY if (value := other.base.get(quantity.name)) is None else quantity.show(value)
        for quantity in (*plain, *scored)
    }
    if set(shown.values()) == {EMPTY}:
        return []
    cells = [shown[quantity.name] for quantity in plain] + [EMPTY] * shares
    for quantity in scored:
        cells += [shown[quantity.name], EMPTY]
    return [["Base model", *cells, EMPTY]]


def times_to_target(results: Results, column: Column, reference: str) -> str:
    """Renders what each row needed for ``TARGET_SHARE`` of the reference's gain: rounds, bytes, and seconds with links
    of ``LINKS``, each the mean over the seeds.

    Empty if no row has a loss of every round.
    """
    others = [row for row in results.grid.rows if row.name == reference]
    times = [(row, results.times_to_target(row, other, column)) for other in others for row in results.grid.rows]
    if not any(found for _, found in times):
        return ""
    heads = ["Algorithm", "Rounds", "Both ways", "Computation, s", *(f"Seconds at {link} Mbit/s" for link in LINKS)]
    rows = [[row.label, *_shown_times(found), str(len(found))] for row, found in times if found]
    share = f"{100 * TARGET_SHARE:.0f} % of {others[0].label}'s gain"
    title = f"To {share}, for one participant; the last columns are computation and transfers:"
    return f"{title}\n\n{_markdown.table([*heads, 'Runs'], rows, left=1)}"


def _shown_times(found: Sequence[TimeToTarget | None]) -> list[str]:
    reached = [time for time in found if time is not None]
    if len(reached) < len(found):
        return ["not reached", *[EMPTY] * (2 + len(LINKS))]
    rounds, moved, computed = (fmean(values) for values in zip(*reached, strict=True))
    links = [f"{computed + 8 * moved / (link * 1e6):,.0f}" for link in LINKS]
    return [f"{rounds:.1f}".removesuffix(".0"), size(moved), f"{computed:,.0f}", *links]


def _shown(value: Spread | None, quantity: Quantity) -> str:
    return EMPTY if value is None else quantity.show(value.mean)


def _within(line: Line, quantity: Quantity) -> str:
    value, found = line.values[quantity.name], line.intervals.get(quantity.name)
    if value is None:
        return "failed" if line.failed else EMPTY
    return quantity.show(value.mean) + (f" ± {_half(found, quantity)}" if found else "")


def _difference(found: Interval | None, quantity: Quantity) -> str:
    """Formats the difference, bold if zero is outside the interval."""
    if found is None:
        return EMPTY
    mark = BEST if found.decided else ""
    if quantity.absolute:
        sign = "+" if found.mean > 0 else ""
        return f"{mark}{sign}{quantity.show(found.mean).lstrip('+')} ± {_half(found, quantity)}{mark}"
    return f"{mark}{found.mean:+.1f} ± {found.half:.1f}{mark}"


def _half(found: Interval, quantity: Quantity) -> str:
    return quantity.show(found.half).lstrip("+")


def _share(line: Line, other: Line, quantity: Quantity) -> str:
    ours, theirs = line.values.get(quantity.name), other.values.get(quantity.name)
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
    return _markdown.table(heads, [row for part in parts for row in _part(part, shown)], left=2)


def _part(lines: Sequence[Line], quantities: Sequence[Quantity]) -> list[list[str]]:
    """The rows of one model, here or in the paper."""
    columns = [_column(lines, quantity) for quantity in quantities]
    return [
        [
            line.row.label,
            _markdown.plain(line.model) + (", paper" if line.source == "paper" else ""),
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


Losses = Mapping[str, float]
"""By candidate: the mean loss of its runs after the last round, infinite where one failed."""


def trial_tables(rows: Sequence[Row], runs: Iterable[Record]) -> Iterator[str]:
    """One table for rows with the same candidates; the candidates' order is that of the runs."""
    labels = {row.name: row.label for row in rows}
    by_row: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        if run.row in labels:
            by_row.setdefault(run.row, {}).setdefault(_candidate(run), []).append(validation_loss(run))
    by_candidates: dict[tuple[str, ...], dict[str, Losses]] = {}
    for row in (row for row in labels if row in by_row):
        losses = {candidate: fmean(found) for candidate, found in by_row[row].items()}
        by_candidates.setdefault(tuple(losses), {})[row] = losses
    for candidates, found in by_candidates.items():
        lines = [[labels[row], *_cells(losses)] for row, losses in found.items()]
        yield _markdown.table(["Loss on the validation split", *candidates], lines, left=1)


def validation_loss(run: Record) -> float:
    """Returns the loss after the last round, infinite if the run failed."""
    loss = EVAL_LOSS.of(run) if run.error is None else None
    return math.inf if loss is None or not math.isfinite(loss) else loss


def _candidate(run: Record) -> str:
    """Returns ``adam 0.0001``, with momentum and options if set; rate and distance if losses are compared."""
    local = run.spec["algorithm"]["local"]
    rate = f"{local['learning_rate']:g}"
    if "optimizer" not in local:
        return f"{rate}, ε = {local['epsilon']:g}"
    more = {**({"momentum": local["momentum"]} if local.get("momentum") else {}), **(local.get("options") or {})}
    options = (f"{name.removeprefix('normalize_')} {value}" for name, value in more.items())
    return ", ".join([f"{local['optimizer']} {rate}", *options])


def _cells(losses: Losses) -> list[str]:
    best = min(losses.values())
    shown = ("failed" if math.isinf(loss) else EVAL_LOSS.show(loss) for loss in losses.values())
    return [f"**{text}**" if loss == best else text for text, loss in zip(shown, losses.values(), strict=True)]


AGAINST_REFERENCE = ("lower:", "higher:", "undecided:")
AGAINST_RIVALS = ("ends lower than", "higher than", "undecided against")
SAME_BYTES = 0.99
"""Rows with the same budget of bytes fill it to within this share."""
SAME_START = 0.005
"""Machines and number formats change a base model's loss by less than this share."""


def verdicts(results: Results, column: Column, quantity: Quantity, reference: str) -> Iterator[str]:
    """Yields a sentence on all rows and the reference, one on rows that began elsewhere than the reference, and one on
    each of our rows and the rivals that send as much.
    """
    rows = [row for row in results.grid.rows if results.runs(row, column)]
    for other in rows:
        if other.name == reference:
            gaps = [(row, results.difference(row, other, column, quantity)) for row in rows if row is not other]
            if sentence := _sentence(gaps, AGAINST_REFERENCE):
                yield f"Against {other.label} {sentence}."
            if sentence := _other_starts(results, column, rows, other):
                yield sentence
    at_least = f"at least {100 * SAME_BYTES:.0f} % of its bytes"
    for ours in rows:
        if ours.group == OURS:
            rivals = _sending_as_much(results, ours, rows, column)
            gaps = [(row, results.difference(ours, row, column, quantity)) for row in rivals]
            if sentence := _sentence(gaps, AGAINST_RIVALS):
                yield f"{ours.label}, of the rivals that send {at_least}, {sentence}."


def _other_starts(results: Results, column: Column, rows: Sequence[Row], reference: Row) -> str:
    """Returns a sentence on rows with runs that began at another loss; empty if all began at the reference's."""
    if (start := results.base(reference, column, EVAL_LOSS)) is None:
        return ""
    found = ((row, results.base(row, column, EVAL_LOSS)) for row in rows)
    others = [
        f"{row.label} ({EVAL_LOSS.show(loss)})"
        for row, loss in found
        if loss is not None and abs(loss / start - 1) > SAME_START
    ]
    differed = f"the loss differed from {reference.label}'s, {EVAL_LOSS.show(start)}"
    return f"Before the first round {differed}: {', '.join(others)}." if others else ""


def _sending_as_much(results: Results, ours: Row, rows: Sequence[Row], column: Column) -> list[Row]:
    """Returns the rivals with participants that send as many bytes as ours or more, as ``SAME_BYTES`` defines it."""
    sent = {row.name: value.mean for row in rows if (value := results.value(row, column, BYTES_UP))}
    return [
        row for row in rows if row.group != OURS and sent.get(row.name, 0) >= SAME_BYTES * sent.get(ours.name, math.inf)
    ]


def _sentence(found: Sequence[tuple[Row, Interval | None]], words: tuple[str, str, str]) -> str:
    gaps = [(row, gap) for row, gap in found if gap is not None]
    sorts = (
        [_named(row, gap) for row, gap in gaps if gap.decided and gap.mean < 0],
        [_named(row, gap) for row, gap in gaps if gap.decided and gap.mean > 0],
        [_named(row, gap) for row, gap in gaps if not gap.decided],
    )
    return "; ".join(f"{word} {', '.join(named)}" for word, named in zip(words, sorts, strict=True) if named)


def _named(row: Row, gap: Interval) -> str:
    return f"{row.label} ({gap.mean:+.1f} ± {gap.half:.1f} %)"
