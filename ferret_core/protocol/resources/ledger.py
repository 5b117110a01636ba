"""The ledger: one entry per committed round, with the update applied to the model."""

from __future__ import annotations

from pydantic import Field

from ferret_core.protocol.ids import Digest
from ferret_core.protocol.resources.base import Bytes, Json, Resource


class LedgerEntry(Resource):
    """One committed round. The base model and all entries rebuild the global model."""

    record: Json = Field(description="The record")
    hash: Digest = Field(description="Link of the hash chain: BLAKE3 of the canonical JSON of the record's header")
    update_size: Bytes = Field(description="Bytes of the update at `/updates/{round}`")


class LedgerPage(Resource):
    """Entries in the order of their rounds. Pass the last round as `after` to get the next."""

    items: list[LedgerEntry]
