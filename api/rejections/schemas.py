"""Refused uploads as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from api.schemas import Page, Resource


class Rejection(Resource):
    """Uploads of one participant in one round that were refused for the same reason. None of them moved the model."""

    participant: str
    round: int
    code: str = Field(description="Stable name of the reason, e.g. `contribution.non_finite`")
    detail: str = Field(description="What was wrong with the last of them")
    count: int = Field(description="How many there were")
    created_at: datetime = Field(description="When the first came")
    updated_at: datetime = Field(description="When the last came")


class RejectionPage(Page[Rejection]):
    """Rejections by round, then by participant."""
