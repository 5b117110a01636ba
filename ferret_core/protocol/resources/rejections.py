"""Uploads that were refused."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.resources.base import Page, Resource
from ferret_core.protocol.sanitize import Line, Words


class Rejection(Resource):
    """Uploads of one participant in one round that were refused for the same reason. None of them changed the model."""

    participant: Line
    display_name: Line = Field(description="Name of the participant for people")
    round: int
    code: Line = Field(description="Stable name of the reason, e.g. `contribution.non_finite`")
    detail: Words = Field(description="What was wrong with the latest upload")
    count: int = Field(description="Number of such uploads")
    created_at: datetime = Field(description="When the first was refused")
    updated_at: datetime = Field(description="When the latest was refused")


class RejectionPage(Page[Rejection]):
    """Rejections by round, then by participant."""
