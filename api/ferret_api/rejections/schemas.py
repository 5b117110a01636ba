"""Refused uploads as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import Field

from ferret_api.schemas import Page, Resource
from ferret_db import tables


class Rejection(Resource):
    """Uploads of one participant in one round that were refused for the same reason. None of them changed the model."""

    participant: str
    display_name: str = Field(description="What people call the participant")
    round: int
    code: str = Field(description="Stable name of the reason, e.g. `contribution.non_finite`")
    detail: str = Field(description="What was wrong with the latest upload")
    count: int = Field(description="Number of such uploads")
    created_at: datetime = Field(description="When the first was refused")
    updated_at: datetime = Field(description="When the latest was refused")

    @classmethod
    def of(cls, row: tables.Rejection, display_names: Mapping[str, str]) -> Rejection:
        """Whoever is not among the real participants' ``display_names`` is simulated."""
        return cls(
            participant=row.participant,
            display_name=display_names.get(row.participant, row.participant),
            round=row.round,
            code=row.code,
            detail=row.detail,
            count=row.count,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


class RejectionPage(Page[Rejection]):
    """Rejections by round, then by participant."""
