"""The roster of a group: its members, their keys, and the round and model that they sum for.

Its digest, the *context*, salts every key of the group. Members with different rosters, models or specifications have
masks that do not cancel, and refuse each other's deals.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Literal

from pydantic import Field

from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import Digest, ExperimentId, ParticipantName, PublicKey
from ferret_core.protocol.limits import MAX_ELEMENTS, MAX_ROUNDS
from ferret_core.protocol.signatures import is_valid
from ferret_core.protocol.spec import StrictModel
from ferret_core.secure.packing import MOST_BITS, Layout, Segment
from ferret_core.secure.prekeys import Prekey, PrekeyStatement, is_weak

PURPOSE = "ferret.secure.roster.1"
LEAST_MEMBERS = 3
MOST_MEMBERS = 64


class Origin(StrictModel):
    """The round, attempt and model of a sum, as a member knows them itself."""

    experiment: ExperimentId
    round: int = Field(ge=1, le=MAX_ROUNDS)
    attempt: int = Field(ge=1, le=1000)
    spec: Digest = Field(description="Digest of the resolved specification, without the server's paths")
    base_digest: Digest = Field(description="Digest of the model that the round starts from")
    previous: Digest | Literal[""] = Field(description="Hash of the ledger's last record; empty in round 1")
    round_seed: int = Field(ge=0, lt=2**64)


class RosterMember(Prekey):
    """One member: its name, its Ed25519 identity and its one-time keys."""

    name: ParticipantName
    identity: PublicKey


class Roster(StrictModel):
    """A group for one attempt at one round; members are in the order of their names.

    A sum needs ``least`` survivors, and stays secret from the server with up to ``colluders`` members.
    """

    origin: Origin
    group: int = Field(ge=1, le=MAX_ELEMENTS)
    members: tuple[RosterMember, ...] = Field(min_length=LEAST_MEMBERS, max_length=MOST_MEMBERS)
    least: int = Field(ge=LEAST_MEMBERS, le=MOST_MEMBERS)
    colluders: int = Field(ge=0, le=MOST_MEMBERS)
    segments: tuple[Segment, ...] = Field(min_length=1, max_length=1000)

    @cached_property
    def context(self) -> str:
        """BLAKE3 of the roster's canonical JSON with the purpose, the threshold and each segment's bits."""
        bits = [ring.bits for ring in self.layout.rings]
        values = self.model_dump(mode="json")
        return digest_json({"purpose": PURPOSE, "threshold": self.threshold, "bits": bits, **values})

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.segments, len(self.members))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @property
    def threshold(self) -> int:
        """Shares that a secret needs."""
        return threshold(len(self.members), self.colluders)

    @property
    def needed(self) -> int:
        """Survivors that a sum needs: the threshold, and at least ``least``."""
        return survivors_needed(len(self.members), self.least, self.colluders)

    def member(self, name: str) -> RosterMember:
        return self.members[self.place(name)]

    def place(self, name: str) -> int:
        """Returns the member's index; raises ``secure.roster_invalid`` for a stranger."""
        if name not in self.names:
            raise invalid("participant", name, "is not in the roster")
        return self.names.index(name)

    def verify(self) -> None:
        """Raises ``secure.roster_invalid`` for an order, a bound, a key or a signature that is not valid."""
        for name, following in pairwise(self.names):
            if name >= following:
                raise invalid("members", following, f"does not follow {name}: sort members by name, each once")
        self._check_bounds()
        for field in ("identity", "mask", "share"):
            owners = dict[str, str]()
            for member in self.members:
                other = owners.setdefault(key := getattr(member, field), member.name)
                if other != member.name:
                    raise invalid("participant", member.name, f"has the {field} key of {other}, {key}")
        for member in self.members:
            _check(member, self.origin.experiment)

    def _check_bounds(self) -> None:
        members = len(self.members)
        if self.least < self.colluders + 2:
            raise invalid(
                "least", self.least, f"with {self.colluders} colluders at least {self.colluders + 2} must sum"
            )
        if self.needed > members:
            message = (
                f"are too few: a sum with least = {self.least} and colluders = {self.colluders} needs {self.needed}"
            )
            raise invalid("members", members, message)
        for _, most, wraps in self.segments:
            if wraps and most & (most + 1):
                raise invalid("segments", most, "is not 2^bits − 1, as in a segment that wraps")
            if not wraps and (members * most).bit_length() > MOST_BITS:
                raise invalid("segments", most, f"times {members} members does not fit {MOST_BITS} bits")


def threshold(members: int, colluders: int) -> int:
    """Returns t = max(⌊2n/3⌋ + 1, ⌊(n + colluders)/2⌋ + 1).

    With 2t > n + colluders no two sets of t members, which share the colluders alone, can be shown different lists.
    """
    return max(2 * members // 3, (members + colluders) // 2) + 1


def survivors_needed(members: int, least: int, colluders: int) -> int:
    """Returns the survivors that a sum over this many members needs: the threshold, and at least ``least``."""
    return max(threshold(members, colluders), least)


def in_order(roster: Roster, names: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of members in the roster's order."""
    chosen = set(names)
    return tuple(name for name in roster.names if name in chosen)


def invalid(field: str, value: object, message: str) -> FerretError:
    return FerretError.of_field("secure.roster_invalid", field, value, message)


def _check(member: RosterMember, experiment: str) -> None:
    for field, key in (("mask", member.mask), ("share", member.share)):
        if is_weak(key):
            raise invalid("participant", member.name, f"has a weak {field} key, {key}")
    statement = PrekeyStatement(experiment, member.name, member.mask, member.share)
    if not is_valid(member.identity, member.signature, statement):
        raise invalid("participant", member.name, "has one-time keys that its identity did not sign")
