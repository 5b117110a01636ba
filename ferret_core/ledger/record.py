"""The ledger: base model + one small record per round rebuilds any round's model.

A record names, by digest, the model before and after, the contributions that count and the update applied; each
record carries the hash of the one before, so that none can be changed or dropped unnoticed. That hash is one of the
record's header, which commits to the contributions by the root of a tree: a receipt
(:mod:`ferret_core.ledger.receipt`) proves one of them without the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from ferret_core.protocol import merkle
from ferret_core.protocol.digest import canonical_json, digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import AssignmentId, Digest, ExperimentId, ParticipantName, PublicKey, SignatureText
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.signatures import Signed, is_valid
from ferret_core.protocol.spec import StrictModel
from ferret_core.secure.roster import MOST_MEMBERS

REASON_LENGTH = 1000
Reason = Annotated[str, Field(max_length=REASON_LENGTH)]
LEDGER_VERSION: Literal[1] = 1
MOST_HALVINGS = 10
"""Maximum halvings of a round's step: the smallest is 2⁻¹⁰ of the full one."""
MOST_GROUPS = 10_000
Halvings = Annotated[int, Field(ge=0, le=MOST_HALVINGS)]
HALVINGS = "Number of times the step guard halved the step: the round moved the model by 2^-halvings of it"


class Signature(NamedTuple):
    """The signature of a contribution, with its participant, assignment and key."""

    participant: ParticipantName
    public_key: PublicKey
    assignment: AssignmentId
    signature: SignatureText


class Leaf(StrictModel):
    """A record's entry for one contribution; None for fields that do not apply."""

    participant: ParticipantName
    contribution: Digest
    clipped: float | None = Field(default=None, description="Factor that its update was multiplied by")
    refused: Reason | None = Field(default=None, description="Reason why it was left out of the model")
    public_key: PublicKey | None = None
    assignment: AssignmentId | None = None
    signature: SignatureText | None = None

    def text(self) -> str:
        """Returns the canonical JSON without empty fields, which the tree hashes."""
        return canonical_json(self.model_dump(mode="json", exclude_none=True)).decode()


class GroupRecord(StrictModel):
    """A sum: the contributions in the record are its survivors', under masks, or commitments if the server reads them.

    ``members`` and ``survivors`` are in the order of their names.
    """

    name: ParticipantName
    members: tuple[ParticipantName, ...] = Field(max_length=MOST_MEMBERS)
    survivors: tuple[ParticipantName, ...] = Field(max_length=MOST_MEMBERS)
    sum: Digest = Field(description="Digest of the survivors' mean, as a contribution")
    transcript: Digest | None = Field(
        default=None,
        exclude_if=lambda transcript: transcript is None,
        description="Digest of the transcript, from which anyone can repeat the sum; absent if the server added the "
        "noise that protects records",
    )
    clipped: float | None = Field(default=None, description="Factor that the group's update was multiplied by")
    refused: Reason | None = Field(default=None, description="Reason why its sum was left out of the model")
    releases: int | None = Field(
        default=None,
        ge=1,
        exclude_if=lambda releases: releases is None,
        description="Attempts at the round, which all cost the members' records privacy; absent unless noise protects "
        "records",
    )


Groups = Annotated[
    tuple[GroupRecord, ...],
    Field(
        max_length=MOST_GROUPS,
        exclude_if=lambda groups: not groups,
        description="The sums of the contributions; absent if the server used each of them",
    ),
]


class Header(StrictModel):
    """A record without its contributions. ``root`` commits to their leaves, in the order of the participants."""

    version: Literal[1]
    experiment: ExperimentId
    spec: Digest = Field(description="Digest of the resolved specification")
    round: int = Field(ge=1, le=MAX_ROUNDS)
    base_digest: Digest
    digest: Digest
    update: Digest
    previous: Digest | Literal[""] = Field(description="Hash of the previous record; empty for round 1")
    size: int = Field(ge=0, description="Number of contributions, including the rejected ones")
    root: Digest
    halvings: Halvings = Field(description=HALVINGS)
    groups: Groups = ()

    @property
    def hash(self) -> str:
        """The record's hash: the BLAKE3 of the header's canonical JSON."""
        return digest_json(self.model_dump(mode="json"))


class LedgerRecord(StrictModel):
    """One committed round. ``update`` is the digest of the blob that :meth:`Replica.advance` applies.

    Lists are in the order of participants, each once.
    """

    version: Literal[1]
    experiment: ExperimentId
    spec: Digest = Field(description="Digest of the resolved specification")
    round: int = Field(ge=1, le=MAX_ROUNDS)
    base_digest: Digest
    digest: Digest
    update: Digest
    contributions: tuple[tuple[ParticipantName, Digest], ...] = Field(
        description="(participant, contribution digest), in order"
    )
    previous: Digest | Literal[""] = Field(description="Hash of the previous record; empty for round 1")
    clipped: tuple[tuple[ParticipantName, float], ...] = Field(
        description="(participant, factor that its update was multiplied by), in order"
    )
    refused: tuple[tuple[ParticipantName, Digest, Reason], ...] = Field(
        description="(participant, contribution digest, reason for leaving it out), in order"
    )
    signatures: tuple[Signature, ...] = Field(
        description="(participant, public key, assignment, signature) of participants that signed, in order"
    )
    halvings: Halvings = Field(description=HALVINGS)
    groups: Groups = ()

    @model_validator(mode="after")
    def _leaves_say_all(self) -> Self:
        """Rejects content that the leaves do not contain, because the hash covers only the leaves."""
        accepted, refused = [name for name, _ in self.contributions], [name for name, _, _ in self.refused]
        clipped, signed = [name for name, _ in self.clipped], [each.participant for each in self.signatures]
        for field, names, allowed in (
            ("contributions", accepted, {*accepted}),
            ("refused", refused, {*refused} - {*accepted}),
            ("clipped", clipped, {*accepted}),
            ("signatures", signed, {*accepted, *refused}),
        ):
            if any(name >= following for name, following in pairwise(names)):
                raise ValueError(f"{field}: participants are not in order, each once")
            if wrong := sorted({*names} - allowed):
                raise ValueError(f"{field}: {wrong[0]} does not belong there")
        if self.groups:
            self._groups_say_all(accepted, refused, clipped)
        return self

    def _groups_say_all(self, accepted: list[str], refused: list[str], clipped: list[str]) -> None:
        """Rejects groups with contributions other than their survivors', and groups that share a member."""
        counted = sorted(name for group in self.groups if group.refused is None for name in group.survivors)
        left_out = sorted(name for group in self.groups if group.refused is not None for name in group.survivors)
        members = [name for group in self.groups for name in group.members]
        strangers = [name for group in self.groups for name in group.survivors if name not in group.members]
        if (counted, left_out) != (accepted, refused) or clipped or strangers or len({*members}) != len(members):
            raise ValueError(
                "groups: the contributions must be the survivors' of groups that count, none of them clipped "
                "on its own, and each member in one group"
            )

    @property
    def factors(self) -> dict[str, float]:
        """Factors of the shortened updates, by participant or group."""
        found = dict(self.clipped)
        return found | {group.name: group.clipped for group in self.groups if group.clipped is not None}

    @property
    def hash(self) -> str:
        """Hash that the next record carries: :attr:`Header.hash`."""
        return self.header().hash

    def header(self) -> Header:
        leaves = [leaf.text().encode() for leaf in self.leaves()]
        own = {name: getattr(self, name) for name in Header.model_fields.keys() & LedgerRecord.model_fields.keys()}
        return Header(**own, size=len(leaves), root=merkle.root(leaves))

    def leaves(self) -> list[Leaf]:
        """Returns the leaf of each contribution, including rejected ones, in the order of participants."""
        digests = [(name, digest, None) for name, digest in self.contributions]
        factors, signatures = dict(self.clipped), {each.participant: each for each in self.signatures}
        return [
            Leaf(
                participant=name,
                contribution=digest,
                clipped=factors.get(name),
                refused=refused,
                **_signed_by(signatures.get(name)),
            )
            for name, digest, refused in sorted([*digests, *self.refused], key=lambda each: each[0])
        ]


def _signed_by(signature: Signature | None) -> dict[str, str]:
    if signature is None:
        return {}
    return {name: value for name, value in signature._asdict().items() if name != "participant"}


class LedgerEntry(NamedTuple):
    """A record with its recorded hash and the update blob that it names."""

    record: LedgerRecord
    hash: str
    update: bytes

    @classmethod
    def read(cls, record: Mapping[str, Any], recorded_hash: str, update: bytes) -> Self:
        """Creates the entry of a record as stored or sent."""
        return cls(LedgerRecord.model_validate(record), recorded_hash, update)


def contributions_digest(contributions: Sequence[tuple[str, str]]) -> str:
    """Returns the hash of a frozen set: (participant, contribution digest) in participant order."""
    return digest_json(sorted(contributions))


def check_link(record: LedgerRecord, recorded_hash: str, previous: str) -> None:
    """Raises ``ledger.broken`` unless the record has that hash, and follows the record with the hash ``previous``."""
    if record.hash != recorded_hash:
        raise broken(record, "its content does not match its recorded hash")
    if record.previous != previous:
        raise broken(record, "it does not follow the record before it")


def broken(record: LedgerRecord, reason: str) -> FerretError:
    return FerretError.of_field("ledger.broken", "round", record.round, reason)


class SignatureChecker:
    """Participants' keys so far: one for each name; after its first signature, all its contributions must be signed."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def check(self, record: LedgerRecord) -> None:
        """Raises ``ledger.broken`` for an invalid or missing signature in the record."""
        digests = dict(record.contributions) | {name: digest for name, digest, _ in record.refused}
        for name, key, assignment, signature in record.signatures:
            if self._known.setdefault(name, key) != key:
                raise broken(record, f"{name} signed with another key than before")
            signed = Signed(record.experiment, record.round, name, record.base_digest, assignment, digests[name])
            if not is_valid(key, signature, signed):
                raise broken(record, f"the signature of {name} is not valid")
        for name in sorted(digests.keys() & self._known.keys() - {each.participant for each in record.signatures}):
            raise broken(record, f"the contribution of {name} is not signed, and an earlier one was")
