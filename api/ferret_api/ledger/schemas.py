"""The ledger as the API shows it."""

from __future__ import annotations

from pydantic import Field

from ferret_api.schemas import Json, Resource
from ferret_core.ledger.record import Header


class LedgerEntry(Resource):
    """One committed round: base model + all entries rebuild the global model."""

    record: Json = Field(description="The record")
    hash: str = Field(description="Its link in the chain: BLAKE3 of its header's canonical JSON")
    update_size: int = Field(description="Bytes of the update under `/updates/{round}`")


class LedgerPage(Resource):
    """Entries in order of their rounds; ask again with the last round as `after`."""

    items: list[LedgerEntry]


class Receipt(Resource):
    """A leaf of a record's Merkle tree with the way to its root, and the record's header."""

    header: Header
    hash: str = Field(description="The record's link in the chain: BLAKE3 of the header's canonical JSON")
    leaf: str = Field(description="What the record says of the contribution: the canonical JSON that the tree hashes")
    index: int = Field(description="Place of the leaf among the header's `size`")
    path: list[str] = Field(description="Hashes beside the way to the header's `root`, lowest first")
