"""The ledger: base model + one small record per round rebuilds any round's model.

A record names, by digest, the model before and after, the contributions folded in and the update applied; each
record carries the hash of the one before, so that none can be changed or dropped unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from pydantic import Field

from ferret_core.protocol.digest import DIGEST_HEX, digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import Strict

LEDGER_VERSION = 1


class LedgerRecord(Strict):
    """One committed round. ``update`` is the digest of the blob that :meth:`Replica.advance` applies."""

    version: int = Field(default=LEDGER_VERSION, ge=LEDGER_VERSION, le=LEDGER_VERSION)
    experiment: str
    spec: str = Field(description="Digest of the resolved specification")
    round: int = Field(ge=1)
    base_digest: str = Field(min_length=DIGEST_HEX, max_length=DIGEST_HEX)
    digest: str = Field(min_length=DIGEST_HEX, max_length=DIGEST_HEX)
    update: str = Field(min_length=DIGEST_HEX, max_length=DIGEST_HEX)
    contributions: tuple[tuple[str, str], ...] = Field(description="(participant, contribution digest), in order")
    previous: str = Field(description="Hash of the record before; empty for round 1")

    @property
    def hash(self) -> str:
        """The BLAKE3 of the record's canonical JSON: the link that the next record carries."""
        return digest_json(self.model_dump(mode="json"))


class LedgerEntry(NamedTuple):
    """A record with its recorded hash and the update blob it names."""

    record: LedgerRecord
    hash: str
    update: bytes

    @classmethod
    def read(cls, record: Mapping[str, Any], recorded_hash: str, update: bytes) -> Self:
        """The entry of a record as it was stored or sent."""
        return cls(LedgerRecord.model_validate(record), recorded_hash, update)


def contributions_digest(contributions: Sequence[tuple[str, str]]) -> str:
    """The hash of a frozen set: (participant, contribution digest) in participant order."""
    return digest_json(sorted(contributions))


def broken(record: LedgerRecord, reason: str) -> FerretError:
    return FerretError.of_field("ledger.broken", "round", record.round, reason)
