"""The ledger as the API shows it."""

from __future__ import annotations

from pydantic import Field

from ferret_api.schemas import Json, Resource


class LedgerEntry(Resource):
    """One committed round: base model + all entries rebuild the global model."""

    record: Json = Field(description="The record as it was hashed")
    hash: str = Field(description="BLAKE3 of the record's canonical JSON")
    update_size: int = Field(description="Bytes of the update under `/updates/{round}`")


class LedgerPage(Resource):
    """Entries in order of their rounds; ask again with the last round as `after`."""

    items: list[LedgerEntry]
