"""A round's tracing span, the parent of all spans of the round."""

from __future__ import annotations

from sqlalchemy import event
from sqlalchemy.orm import Session

from ferret_db import clock
from ferret_db.repositories import experiments
from ferret_db.tables import Round
from ferret_runtime import tracing
from ferret_runtime.tracing import RoundTrace


def trace_of(round_: Round) -> RoundTrace:
    return RoundTrace(round_.experiment_id, round_.number, round_.attempt)


def ended(s: Session, round_: Round) -> None:
    """Records the span after this transaction, which ends the round, is committed. No other call records it."""
    if not tracing.on():
        return
    begin, end = round_.opened_at, clock.now(s)
    algorithm = experiments.get(s, round_.experiment_id).spec["algorithm"]["name"]
    code = (round_.error or {}).get("code")

    def record(_: Session) -> None:
        tracing.round_ended(
            trace_of(round_),
            begin,
            end,
            code,
            algorithm=algorithm,
            state=str(round_.state),
            bytes_up=round_.bytes_up,
            bytes_down=round_.bytes_down,
        )

    event.listen(s, "after_commit", record, once=True)
