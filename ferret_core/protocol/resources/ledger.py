"""The ledger: what every committed round has applied to the model."""

from __future__ import annotations

from pydantic import Field

from ferret_core.protocol.ids import Digest
from ferret_core.protocol.resources.base import Bytes, Json, Resource


class LedgerEntry(Resource):
    """One committed round. The base model and all entries rebuild the global model."""

    record: Json = Field(description="The record")
    hash: Digest = Field(description="Its link in the chain: BLAKE3 of its header's canonical JSON")
    update_size: Bytes = Field(description="Bytes of the update at `/updates/{round}`")


class LedgerPage(Resource):
    """Entries in the order of their rounds. Pass the last round as `after` to get the next."""

    items: list[LedgerEntry]
