"""The ledger: base model + one small record per round rebuilds any round's model.

A record names, by digest, the model before and after, the contributions folded in and the update applied; each
record carries the hash of the one before, so that none can be changed or dropped unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import AssignmentId, Digest, ExperimentId, ParticipantName, PublicKey, SignatureText
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.spec import Strict

REASON_LENGTH = 1000
Reason = Annotated[str, Field(max_length=REASON_LENGTH)]
LEDGER_VERSION = 3
"""Version 2 has no ``signatures``, and version 1 neither ``clipped`` nor ``refused``: a round without any is still
written as one."""


class Signature(NamedTuple):
    """By whom, for which assignment, and with which key a contribution was signed."""

    participant: ParticipantName
    public_key: PublicKey
    assignment: AssignmentId
    signature: SignatureText


class LedgerRecord(Strict):
    """One committed round. ``update`` is the digest of the blob that :meth:`Replica.advance` applies.

    Who was clipped or left out stands in it only if somebody was, so that older records keep their hashes.
    """

    version: int = Field(default=1, ge=1, le=LEDGER_VERSION)
    experiment: ExperimentId
    spec: Digest = Field(description="Digest of the resolved specification")
    round: int = Field(ge=1, le=MAX_ROUNDS)
    base_digest: Digest
    digest: Digest
    update: Digest
    contributions: tuple[tuple[ParticipantName, Digest], ...] = Field(
        description="(participant, contribution digest), in order"
    )
    previous: Digest | Literal[""] = Field(description="Hash of the record before; empty for round 1")
    clipped: tuple[tuple[ParticipantName, float], ...] = Field(
        default=(), description="(participant, factor its update was multiplied by), in order"
    )
    refused: tuple[tuple[ParticipantName, Digest, Reason], ...] = Field(
        default=(), description="(participant, contribution digest, why it was left out), in order"
    )

    signatures: tuple[Signature, ...] = Field(
        default=(), description="(participant, public key, assignment, signature) of those who signed, in order"
    )

    @model_validator(mode="after")
    def _version_says_what_there_is(self) -> Self:
        expected = version_of(self.clipped, self.refused, self.signatures)
        if self.version != expected:
            raise ValueError(f"version = {self.version}: with what the record holds it is {expected}")
        return self

    @model_serializer(mode="wrap")
    def _without_nobody(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        empty = {name for name in ("clipped", "refused", "signatures") if not getattr(self, name)}
        return {name: value for name, value in whole(self).items() if name not in empty}

    @property
    def hash(self) -> str:
        """The BLAKE3 of the record's canonical JSON: the link that the next record carries."""
        return digest_json(self.model_dump(mode="json"))


def version_of(clipped: Sequence[Any], refused: Sequence[Any], signatures: Sequence[Any]) -> int:
    """The lowest version that can say it: what older ones can is written as by them, and keeps its hash."""
    if signatures:
        return 3
    return 2 if clipped or refused else 1


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
