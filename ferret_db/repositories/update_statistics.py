"""Statistics of committed rounds' updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from ferret_db.tables import Update


def add(s: Session, experiment_id: str, round: int, statistics: Mapping[str, Any]) -> None:
    s.add(Update(experiment_id=experiment_id, round=round, statistics=dict(statistics)))
    s.flush()


def get(s: Session, experiment_id: str, round: int) -> dict[str, Any]:
    """Returns the statistics of a committed round."""
    return s.get_one(Update, (experiment_id, round)).statistics
