"""Contributions: the result of each assignment of a round."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.ids import Digest
from ferret_core.protocol.resources.base import Failure, Page, Resource
from ferret_core.protocol.sanitize import Line
from ferret_core.protocol.states import AssignmentState, ParticipantKind


class Contribution(Resource):
    """One participant's work in one round: its assignment, and the contribution or the reason for its absence."""

    participant: Line
    display_name: Line = Field(description="Display name of the participant")
    kind: ParticipantKind
    round: int
    attempt: int = Field(description="Attempt at the round: 1, or more after attempts without a quorum")
    state: AssignmentState
    digest: Digest | None = Field(description="Digest of the accepted contribution")
    size: int | None = Field(description="Bytes sent")
    bytes_down: int | None = Field(description="Bytes received")
    examples: int | None = Field(description="Examples trained on")
    metrics: dict[Line, float] = Field(description="The participant's own metrics, e.g. its training loss")
    seconds: float | None = Field(description="Seconds of local training and projection")
    factor: float | None = Field(description="Scale factor of clipping; null without clipping")
    error: Failure | None
    created_at: datetime


class ContributionPage(Page[Contribution]):
    """Contributions by round and attempt, then by participant."""
