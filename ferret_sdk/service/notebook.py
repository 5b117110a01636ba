"""Notebook display of experiments: HTML tables without fixed colours, readable in light and dark themes. It
loads pandas on demand for tables of metrics and rounds.

Names, tags and errors are other people's text: they are escaped. The markup contains no scripts or styles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import quantity, size
from ferret_core.protocol.metrics import METRICS, metric
from ferret_core.protocol.resources.experiments import Experiment, ListedExperiment, MetricSummary
from ferret_core.protocol.resources.metrics import MetricPoint
from ferret_core.protocol.resources.rounds import Round
from ferret_core.protocol.sanitize import shown

if TYPE_CHECKING:
    from pandas import DataFrame


COLUMNS = ("", "name", "state", "round", "algorithm", "evaluation loss", "Rouge-L", "sent", "created")


def of_experiment(experiment: Experiment, url: str) -> str:
    """Renders one experiment: its metrics, and a link to the dashboard at ``url``."""
    facts = [
        ("state", experiment.shown_state),
        ("round", f"{experiment.round} of {experiment.rounds}"),
        ("algorithm", experiment.algorithm),
        ("dataset", experiment.dataset),
        ("participants", str(experiment.participants)),
        ("sent", size(experiment.bytes_up)),
    ]
    if experiment.stalled:
        facts.append(("stalled", experiment.stalled.detail))
    if experiment.error:
        facts.append(("error", experiment.error.detail))
    head = f"<p><strong>{_text(experiment.name)}</strong> {_link(url, experiment.id)}</p>"
    parts = [head, _table((), facts)]
    if rows := list(_metrics(experiment.metrics)):
        parts.append(_table(("metric", "first", "last", "best"), rows))
    return "\n".join(parts)


def of_list(experiments: Iterable[ListedExperiment], url: str, *, more: bool) -> str:
    """Renders a table of experiments; ``more``: there are others."""
    rows = [
        (
            each.name,
            each.shown_state,
            f"{each.round}/{each.rounds}",
            each.algorithm,
            *(_last(each.metrics, name) for name in ("eval_loss", "rouge_l")),
            size(each.bytes_up),
            f"{each.created_at:%Y-%m-%d %H:%M}",
        )
        for each in experiments
    ]
    ids = [_link(url, each.id) for each in experiments]
    table = _table(COLUMNS, rows, ids) if rows else "<p>No experiments.</p>"
    return f"{table}\n<p>and more</p>" if more else table


def _metrics(summaries: Mapping[str, MetricSummary]) -> Iterable[tuple[str, str, str, str]]:
    """Yields known metrics in the catalog's order, without costs and without labels' metrics, possibly hundreds."""
    for name in METRICS:
        if name in summaries and METRICS[name].source != "cost":
            entry, found = metric(name), summaries[name]
            first, last, best = (quantity(name, value) or "–" for value in (found.first, found.last, found.best))
            yield (entry.label if entry else name), first, last, best


def _last(metrics: Mapping[str, MetricSummary], name: str) -> str:
    return (quantity(name, metrics[name].last) if name in metrics else None) or "–"


def _link(url: str, id: str) -> str:
    return f'<a href="{escape(f"{url}/experiments/{id}")}" target="_blank" rel="noopener">{_text(id)}</a>'


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]], first: list[str] | None = None) -> str:
    """Renders rows of texts; ``first`` is markup for each first cell."""
    head = "".join(f"<th>{_text(column)}</th>" for column in columns)
    body = [
        "<tr>" + (f"<td>{first[index]}</td>" if first else "") + "".join(f"<td>{_text(cell)}</td>" for cell in row)
        for index, row in enumerate(rows)
    ]
    return "\n".join(["<table>", *([f"<tr>{head}</tr>"] if head else []), *(f"{row}</tr>" for row in body), "</table>"])


def _text(words: str) -> str:
    return escape(shown(words))


def of_metrics(metrics: Mapping[str, Sequence[MetricPoint]]) -> DataFrame:
    """Builds a table with one row per round and one column per metric; NaN where a round has no value.

    ``time`` is that of the round's last value, ``bytes_up_so_far`` the bytes that all participants had sent until then.
    """
    rows: dict[int, dict[str, Any]] = {}
    for name, points in metrics.items():
        for point in points:
            row = rows.setdefault(point.round, {"time": point.time, "bytes_up_so_far": point.bytes_up})
            row["time"] = max(row["time"], point.time)
            row["bytes_up_so_far"] = max(row["bytes_up_so_far"], point.bytes_up)
            row[name] = math.nan if point.value is None else point.value
    return _frame({"round": number, **rows[number]} for number in sorted(rows))


def of_rounds(rounds: Iterable[Round]) -> DataFrame:
    """Builds a table with one row per round: state, participants, bytes and digests. Metrics are in another table."""
    own = [name for name in Round.model_fields if name not in {"number", "metrics", "error"}]
    return _frame({"round": found.number, **{name: _plain(getattr(found, name)) for name in own}} for found in rounds)


def _plain(value: Any) -> Any:
    """Returns a state's text."""
    return str(value) if isinstance(value, str) else value


def _frame(rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    try:
        import pandas
    except ImportError as error:
        message = "pandas is not installed: pip install 'ferret-participant[notebook]', or read Run.metrics()"
        raise FerretError("dependency.missing", message) from error
    table = pandas.DataFrame(list(rows))
    return table if table.empty else table.set_index("round")
