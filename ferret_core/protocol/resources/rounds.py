"""The rounds of an experiment."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.ids import Digest
from ferret_core.protocol.resources.base import Failure, Page, Resource
from ferret_core.protocol.sanitize import Line
from ferret_core.protocol.states import RoundState


class Round(Resource):
    """One round: it opens, its contributions are frozen, and the model is committed."""

    number: int
    attempt: int = Field(description="1, or more after attempts without a quorum")
    state: RoundState
    base_digest: Digest = Field(description="Digest of the model that the participants start from")
    digest: Digest | None = Field(description="Digest of the model after the round")
    participants: int = Field(description="Number of assignments")
    required_contributions: int | None = Field(
        description="Number of contributions that closes the round early; null: all"
    )
    accepted: int = Field(description="Number of accepted contributions")
    rejected: int = Field(description="Number of rejected contributions")
    bytes_up: int = Field(description="Bytes sent by all participants of the round")
    bytes_down: int = Field(description="Bytes received by all participants of the round")
    metrics: dict[Line, float]
    opened_at: datetime
    deadline_at: datetime = Field(
        description="Time at which the round closes with its quorum: after `round.deadline_seconds` "
        "or, if unset, after a time derived from the durations of recent contributions"
    )
    frozen_at: datetime | None
    committed_at: datetime | None
    evaluated_at: datetime | None
    error: Failure | None


class RoundPage(Page[Round]):
    """Rounds by number."""
