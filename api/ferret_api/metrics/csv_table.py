"""Metrics as CSV (RFC 4180): one row per round, one column per metric."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from typing import Any

from ferret_db.repositories.metric_series import MetricSeries

MEDIA_TYPE = "text/csv"


def wanted(accept: str) -> bool:
    """Returns True if an Accept header names CSV."""
    return any(part.partition(";")[0].strip().lower() == MEDIA_TYPE for part in accept.split(","))


def table(found: Sequence[MetricSeries]) -> str:
    """Returns the table as text.

    ``time`` is the time of the round's last value, and ``bytes_up_so_far`` the bytes that all participants had sent by
    then. The cell of a missing metric is empty."""
    rows: dict[int, dict[str, Any]] = {}
    for series in found:
        for point in series.points:
            row = rows.setdefault(point.round, {"round": point.round, "time": point.time, "bytes_up_so_far": 0})
            row["time"] = max(row["time"], point.time)
            row["bytes_up_so_far"] = max(row["bytes_up_so_far"], point.bytes_up)
            row[series.name] = point.value
    text = StringIO()
    writer = csv.DictWriter(text, ["round", "time", "bytes_up_so_far", *(series.name for series in found)])
    writer.writeheader()
    writer.writerows({**rows[number], "time": rows[number]["time"].isoformat()} for number in sorted(rows))
    return text.getvalue()
