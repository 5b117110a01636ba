"""A whole secure sum in one process, for simulations: every member with its state, and the server."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.signatures import new_key, public_key
from ferret_core.secure.group import Group
from ferret_core.secure.member import Member
from ferret_core.secure.packing import Entries, Segment, Vector
from ferret_core.secure.prekeys import PREKEY_BYTES
from ferret_core.secure.roster import Origin, Roster, RosterMember
from ferret_core.secure.transcript import Transcript


class SecureSum(NamedTuple):
    """The sums of the survivors' vectors; their transcript; the digests of their masked vectors, by name; the bytes
    that all members sent."""

    sums: Vector
    transcript: Transcript
    digests: dict[str, str]
    bytes_up: int


class Members:
    """The members of a simulated experiment, with their identities and states between rounds."""

    def __init__(self, least: int, colluders: int) -> None:
        self._least, self._colluders = least, colluders
        self._identities: dict[str, str] = {}
        self._states: dict[str, Member] = {}

    def sum(
        self,
        origin: Origin,
        segments: Sequence[Segment],
        names: Collection[str],
        vectors: Mapping[str, Sequence[Entries]],
        group: int = 1,
    ) -> SecureSum:
        """Sums the ``vectors`` by name; members in ``names`` without one drop out after their deals.

        Raises as the steps of :mod:`ferret_core.secure.member` and :mod:`ferret_core.secure.group`.
        """
        members = tuple(self._listed(name, origin.experiment) for name in sorted(names))
        roster = Roster(
            origin=origin,
            group=group,
            members=members,
            least=self._least,
            colluders=self._colluders,
            segments=tuple(segments),
        )
        server, states, up = Group(roster), self._states, PREKEY_BYTES * len(members)
        for name in roster.names:
            states[name] = states[name].join(roster, origin, self._identities[name])
            up += self._sent(name)
            server.add_deal(name, states[name].message)
        server.close_dealing()
        digests = dict[str, str]()
        for name in sorted(vectors):
            states[name], pieces = states[name].accept(server.delivery(name)).mask(vectors[name])
            masked = b"".join(pieces)
            up += len(masked)
            digests[name] = digest_bytes(masked)
            server.add_masked(name, masked)
        survivors = server.close_masking()
        for name in survivors:
            states[name] = states[name].agree(survivors, self._identities[name])
            up += self._sent(name)
            server.add_signature(name, states[name].message)
        for name in survivors:
            states[name] = states[name].release(server.signatures())
            up += self._sent(name)
            server.add_shares(name, states[name].message)
        transcript = server.transcript()
        return SecureSum(server.sum(), transcript, digests, up)

    def _listed(self, name: str, experiment: str) -> RosterMember:
        identity = self._identities.setdefault(name, new_key())
        self._states[name] = self._states.setdefault(name, Member(name=name)).stocked(1)
        (prekey,) = self._states[name].prekeys(experiment, identity)
        return RosterMember(name=name, identity=public_key(identity), **prekey.model_dump())

    def _sent(self, name: str) -> int:
        return len(self._states[name].message)
