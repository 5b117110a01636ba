"""Groups of sites that take a secure sum from stage to stage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ferret_core.protocol.signatures import new_key, public_key
from ferret_core.secure.group import Group
from ferret_core.secure.member import Demands, Member
from ferret_core.secure.packing import Segment, Vector
from ferret_core.secure.roster import Origin, Roster, RosterMember

ORIGIN = Origin(
    experiment="simulation",
    round=3,
    attempt=1,
    spec="5e" * 32,
    base_digest="ba" * 32,
    previous="1d" * 32,
    round_seed=2**64 - 1,
)
SEGMENTS = (Segment(100, 1), Segment(3, 1 << 22))


class Site:
    """A member with its identity. Every step goes through the JSON of its state, as after a restart."""

    def __init__(self, name: str, keys: int = 2) -> None:
        self.identity = new_key()
        self.member = Member(name=name).stocked(keys)

    @property
    def name(self) -> str:
        return self.member.name

    def step(self, member: Member) -> Member:
        self.member = Member.model_validate_json(member.model_dump_json())
        return self.member

    def join(self, roster: Roster, origin: Origin | None = None, demands: Demands | None = None) -> bytes:
        return self.step(self.member.join(roster, origin or roster.origin, self.identity, demands)).message

    def accept(self, delivery: bytes) -> None:
        self.step(self.member.accept(delivery))

    def mask(self, vector: Sequence[Any]) -> bytes:
        member, pieces = self.member.mask(vector)
        self.step(member)
        return b"".join(pieces)

    def agree(self, survivors: Collection[str]) -> bytes:
        return self.step(self.member.agree(survivors, self.identity)).message

    def release(self, signatures: bytes) -> bytes:
        return self.step(self.member.release(signatures)).message


def sites_of(count: int) -> list[Site]:
    return [Site(f"site-{number:02}") for number in range(1, count + 1)]


def listed(site: Site) -> RosterMember:
    """The site's entry in a roster, with the first of its unused keys."""
    (prekey, *_) = site.member.prekeys(ORIGIN.experiment, site.identity)
    return RosterMember(name=site.name, identity=public_key(site.identity), **prekey.model_dump())


def roster_of(sites: Iterable[Site], origin: Origin = ORIGIN, **changes: Any) -> Roster:
    fields = {"group": 1, "least": 3, "colluders": 1, "segments": SEGMENTS, **changes}
    return Roster(origin=origin, members=tuple(map(listed, sites)), **fields)


def changed(roster: Roster, **changes: Any) -> Roster:
    """A copy with another context; pydantic's own copies keep the cached one."""
    fields = {name: getattr(roster, name) for name in Roster.model_fields}
    return Roster(**fields | changes)


def vectors_of(sites: Iterable[Site], segments: Sequence[Segment] = SEGMENTS) -> dict[str, list[Any]]:
    draws = np.random.default_rng(7)
    return {site.name: [draws.integers(0, most + 1, count) for count, most, _ in segments] for site in sites}


def total(vectors: Mapping[str, Sequence[Any]], names: Iterable[str]) -> list[list[int]]:
    chosen = [vectors[name] for name in names]
    return [sum(parts).tolist() for parts in zip(*chosen, strict=True)]


def as_lists(vector: Vector) -> list[list[int]]:
    return [words.tolist() for words in vector]


def dealt(sites: Sequence[Site], roster: Roster, silent: Collection[str] = ()) -> Group:
    """The group after all sites but the silent ones have dealt and accepted."""
    group = Group(roster)
    dealers = [site for site in sites if site.name not in silent]
    for site in dealers:
        group.add_deal(site.name, site.join(roster))
    group.close_dealing()
    for site in dealers:
        site.accept(group.delivery(site.name))
    return group


def masked(sites: Sequence[Site], group: Group, vectors: Mapping[str, Any], silent: Collection[str] = ()) -> None:
    """Takes the group on, after the dealers but the silent ones have sent their vectors."""
    for site in sites:
        if site.name in (group.dealers or ()) and site.name not in silent:
            group.add_masked(site.name, site.mask(vectors[site.name]))
    group.close_masking()


def agreed(sites: Sequence[Site], group: Group, silent: Collection[str] = ()) -> None:
    """Takes the group on, after the survivors but the silent ones have signed the list."""
    survivors = group.survivors or ()
    for site in sites:
        if site.name in survivors and site.name not in silent:
            group.add_signature(site.name, site.agree(survivors))


def released(sites: Sequence[Site], group: Group, silent: Collection[str] = ()) -> None:
    """Takes the group on, after the survivors but the silent ones have released their shares."""
    for site in sites:
        if site.name in (group.survivors or ()) and site.name not in silent:
            group.add_shares(site.name, site.release(group.signatures()))
