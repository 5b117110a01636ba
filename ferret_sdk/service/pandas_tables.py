"""Metrics and rounds as tables for pandas, which is loaded when it is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.metrics import MetricPoint
from ferret_core.protocol.resources.rounds import Round

if TYPE_CHECKING:
    from pandas import DataFrame


def of_metrics(metrics: Mapping[str, Sequence[MetricPoint]]) -> DataFrame:
    """One row for each round, one column for each metric, NaN where a round has none. ``time`` is when the last value
    of the round came, ``bytes_up_so_far`` what all participants had sent until then."""
    rows: dict[int, dict[str, Any]] = {}
    for name, points in metrics.items():
        for point in points:
            row = rows.setdefault(point.round, {"time": point.time, "bytes_up_so_far": point.bytes_up})
            row["time"] = max(row["time"], point.time)
            row["bytes_up_so_far"] = max(row["bytes_up_so_far"], point.bytes_up)
            row[name] = math.nan if point.value is None else point.value
    return _frame({"round": number, **rows[number]} for number in sorted(rows))


def of_rounds(rounds: Iterable[Round]) -> DataFrame:
    """One row for each round: its state, who took part, bytes and digests. Metrics have a table of their own."""
    own = [name for name in Round.model_fields if name not in {"number", "metrics", "error"}]
    return _frame({"round": found.number, **{name: _plain(getattr(found, name)) for name in own}} for found in rounds)


def _plain(value: Any) -> Any:
    """A state by its word."""
    return str(value) if isinstance(value, str) else value


def _frame(rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    try:
        import pandas
    except ImportError as error:
        message = "pandas is not installed: pip install 'ferret-participant[notebook]', or read Run.metrics()"
        raise FerretError("setup.missing", message) from error
    table = pandas.DataFrame(list(rows))
    return table if table.empty else table.set_index("round")
