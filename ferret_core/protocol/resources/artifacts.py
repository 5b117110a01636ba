"""Files written by an experiment."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.ids import ArtifactId, Digest
from ferret_core.protocol.resources.base import Bytes, Page, Resource, RoundNumber


class Artifact(Resource):
    """A file written by an experiment."""

    id: ArtifactId
    kind: str = Field(description="Kind of file: `checkpoint`")
    round: RoundNumber = Field(description="Round after which it was written; 0 is the base model")
    best: bool = Field(description="true for the round with the best `stopping.metric` among the kept ones")
    name: str = Field(description="File name within its checkpoint")
    size: Bytes = Field(description="Bytes")
    digest: Digest = Field(description="BLAKE3 of the bytes; also the ETag of the download")
    created_at: datetime
    href: str = Field(description="Path of the download")


class ArtifactPage(Page[Artifact]):
    """Artifacts by round and name."""
