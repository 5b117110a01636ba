"""The ledger: base model + one small record per round rebuilds any round's model.

A record names, by digest, the model before and after, the contributions folded in and the update applied; each
record carries the hash of the one before, so that none can be changed or dropped unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from ferret_core.protocol.digest import DIGEST_HEX, digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import Strict

if TYPE_CHECKING:
    from ferret_core.replica import Replica

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


def frozen_digest(contributions: Sequence[tuple[str, str]]) -> str:
    """The hash of a frozen set: (participant, contribution digest) in participant order."""
    return digest_json(sorted(contributions))


def verify(replica: Replica, entries: Iterable[LedgerEntry]) -> Iterator[LedgerRecord]:
    """Replays ``entries`` on ``replica`` and yields each record that holds.

    Raises ``ledger.broken`` at the first one whose hash, link, update or model digest is not what was recorded.
    """
    previous = ""
    for record, recorded_hash, update in entries:
        if record.hash != recorded_hash:
            raise broken(record, "its content does not match its recorded hash")
        if record.previous != previous:
            raise broken(record, "it does not follow the record before it")
        replica.advance(record, update)
        previous = recorded_hash
        yield record


def broken(record: LedgerRecord, reason: str) -> FerretError:
    return FerretError.of_field("ledger.broken", "round", record.round, reason)
