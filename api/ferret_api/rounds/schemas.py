"""A round as the API shows it."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field
from sqlalchemy.orm import Session

from ferret_api.schemas import Failure, Page, Resource
from ferret_core.protocol.states import RoundState
from ferret_db.repositories import service_clock
from ferret_db.repositories.rounds import RoundSummary


class Round(Resource):
    """One round: from opening over the frozen set of contributions to the committed model."""

    number: int
    attempt: int = Field(description="1, or more after attempts without a quorum")
    state: RoundState
    base_digest: str = Field(description="Digest of the model the participants started from")
    digest: str | None = Field(description="Digest of the model after the round")
    participants: int = Field(description="Assignments handed out")
    needed: int | None = Field(description="Contributions after which the round closes at once; null: all")
    accepted: int
    rejected: int
    bytes_up: int = Field(description="Bytes sent by the round's participants, in all")
    bytes_down: int = Field(description="Bytes received by the round's participants, in all")
    metrics: dict[str, float]
    opened_at: datetime
    deadline_at: datetime = Field(
        description="When the round closes with its quorum: after round.deadline_seconds, or, where that is not given, "
        "a time that follows from how long the contributions of recent rounds took"
    )
    frozen_at: datetime | None
    committed_at: datetime | None
    evaluated_at: datetime | None
    error: Failure | None

    @classmethod
    def of(cls, s: Session, summary: RoundSummary) -> Round:
        columns = {name: getattr(summary.round, name) for name in cls.model_fields if hasattr(summary.round, name)}
        deadline_at = service_clock.as_told(s, summary.round.deadline_at)
        return cls.model_validate(columns | summary._asdict() | {"deadline_at": deadline_at})


class RoundPage(Page[Round]):
    """Rounds in order of their numbers."""
