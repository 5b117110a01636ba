"""Metrics and rounds as pandas tables. pandas is loaded on demand."""

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
