"""Refused uploads."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.resources.base import Page, Resource
from ferret_core.protocol.sanitize import Line, Words


class Rejection(Resource):
    """Uploads of one participant in one round that were refused for the same reason. None of them changed the model."""

    participant: Line
    display_name: Line = Field(description="Display name of the participant")
    round: int
    code: Line = Field(description="Stable name of the reason, e.g. `contribution.non_finite`")
    detail: Words = Field(description="Error of the latest upload")
    count: int = Field(description="Number of such uploads")
    created_at: datetime = Field(description="Time of the first refusal")
    updated_at: datetime = Field(description="Time of the latest refusal")


class RejectionPage(Page[Rejection]):
    """Rejections by round, then by participant."""
