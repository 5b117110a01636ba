"""An artifact as the API shows it."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_api.schemas import PREFIX, Page, Resource
from ferret_db import tables


class Artifact(Resource):
    """One file that an experiment has written."""

    id: str
    kind: str = Field(description="What the file is part of: `checkpoint`")
    round: int = Field(description="Round after which it was written; 0 is the base model")
    best: bool = Field(description="Whether its round is the best, by `stopping.metric`, of those that are kept")
    name: str = Field(description="File name within its checkpoint")
    size: int = Field(description="Bytes")
    digest: str = Field(description="BLAKE3 of the bytes; also the ETag of the download")
    created_at: datetime
    href: str = Field(description="Where the bytes are")

    @classmethod
    def of(cls, row: tables.Artifact, best: int | None) -> Artifact:
        columns = {name: getattr(row, name) for name in cls.model_fields.keys() - {"href", "best"}}
        href = f"{PREFIX}/experiments/{row.experiment_id}/artifacts/{row.id}"
        return cls(href=href, best=row.round == best, **columns)


class ArtifactPage(Page[Artifact]):
    """Artifacts by round and name."""
