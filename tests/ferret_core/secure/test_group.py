"""A group's sum is exact after any dropout at any stage. A group below its threshold gets no sum."""

from __future__ import annotations

import random
from contextlib import nullcontext

import numpy as np
import pytest

from ferret_core.secure import shamir
from ferret_core.secure.group import Group
from ferret_core.secure.shamir import SHARE_BYTES
from ferret_core.secure.shares import message_bytes
from tests.ferret_core.secure.groups import (
    agreed,
    as_lists,
    changed,
    dealt,
    listed,
    masked,
    released,
    roster_of,
    sites_of,
    total,
    vectors_of,
)
from tests.refusals import refused

FIVE = [f"site-0{number}" for number in range(1, 6)]


@pytest.mark.parametrize("dropped", [(), *((name,) for name in FIVE)], ids=lambda names: "-".join(names) or "nobody")
@pytest.mark.parametrize("stage", ["deal", "mask", "release"])
def test_the_sum_is_exact_whoever_drops_out(stage: str, dropped: tuple[str, ...]) -> None:
    """Five members with a threshold of four: one may drop out at each stage, or at none."""
    sites, silent = sites_of(5), {stage: dropped}
    vectors = vectors_of(sites)
    group = dealt(sites, roster_of(sites), silent.get("deal", ()))
    masked(sites, group, vectors, silent.get("mask", ()))
    agreed(sites, group, silent.get("release", ()))
    released(sites, group, silent.get("release", ()))
    expected = [name for name in FIVE if stage == "release" or name not in dropped]
    assert list(group.survivors or ()) == expected
    assert as_lists(group.sum()) == total(vectors, expected)
    group.transcript().verify()


@pytest.mark.parametrize("members", [3, 7])
def test_random_dropouts_give_the_exact_sum_or_a_typed_refusal(members: int) -> None:
    draws = random.Random(members)
    outcomes = set[bool]()
    for _ in range(8):
        sites = sites_of(members)
        vectors, names = vectors_of(sites), [site.name for site in sites]
        roster = roster_of(sites)
        gone: list[set[str]] = []
        for _ in range(4):
            gone.append({name for name in names if draws.random() < 0.08} | (gone[-1] if gone else set()))
        outcomes.add(possible := members - len(gone[-1]) >= roster.threshold)
        with nullcontext() if possible else refused("secure.too_few"):
            group = dealt(sites, roster, gone[0])
            masked(sites, group, vectors, gone[1])
            agreed(sites, group, gone[2])
            released(sites, group, gone[3])
            assert as_lists(group.sum()) == total(vectors, group.survivors or ())
    assert outcomes == {True, False}


def test_below_the_threshold_nothing_is_combined() -> None:
    sites = sites_of(5)
    group = dealt(sites, roster_of(sites))
    masked(sites, group, vectors_of(sites))
    agreed(sites, group, FIVE[3:])
    with refused("secure.too_few", "signatures = 3"):
        group.signatures()
    agreed(sites, group)
    released(sites, group, FIVE[3:])
    with refused("secure.too_few", "releases = 3"):
        group.sum()
    sites = sites_of(5)
    with refused("secure.too_few", "dealers = 3"):
        dealt(sites, roster_of(sites), FIVE[:2])
    sites = sites_of(5)
    group = dealt(sites, roster_of(sites))
    with refused("secure.too_few", "survivors = 3"):
        masked(sites, group, vectors_of(sites), FIVE[:2])


def test_more_survivors_may_be_required_than_the_threshold() -> None:
    sites = sites_of(5)
    with refused("secure.too_few", "dealers = 4"):
        dealt(sites, roster_of(sites, least=5), FIVE[:1])


def test_a_wrong_share_names_who_released_it_and_the_others_suffice() -> None:
    sites = sites_of(5)
    vectors = vectors_of(sites)
    group = dealt(sites, roster_of(sites))
    masked(sites, group, vectors)
    agreed(sites, group)
    shares = bytearray(sites[1].release(group.signatures()))
    shares[SHARE_BYTES * 3] ^= 1
    with refused("secure.shares_invalid", "site-02", "site-04"):
        group.add_shares("site-02", bytes(shares))
    with refused("secure.shares_invalid", "site-02"):
        group.add_shares("site-02", bytes(shares[1:]))
    released(sites, group, ["site-02"])
    assert as_lists(group.sum()) == total(vectors, FIVE)


@pytest.mark.parametrize("stage", ["a survivor", "a dropout"])
def test_a_wrong_polynomial_names_its_dealer(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    """The shares match their hashes, and do not give the secret."""
    sites = sites_of(5)
    roster, split = roster_of(sites), shamir.split
    group = Group(roster)
    for site in sites:
        cheats = site.name == "site-02"
        monkeypatch.setattr(shamir, "split", (lambda _, *rest: split(bytes(32), *rest)) if cheats else split)
        group.add_deal(site.name, site.join(roster))
    group.close_dealing()
    for site in sites:
        site.accept(group.delivery(site.name))
    masked(sites, group, vectors_of(sites), ["site-02"] if stage == "a dropout" else ())
    agreed(sites, group)
    released(sites, group)
    with refused("secure.shares_invalid", "site-02", "seed" if stage == "a survivor" else "mask"):
        group.transcript()


def test_a_sum_that_honest_members_cannot_have_is_out_of_range() -> None:
    """A member that masks 7 where 1 is the most: the ring of three bits has room for it, and the sum is above five."""
    sites = sites_of(5)
    group = dealt(sites, roster_of(sites))
    vectors = {site.name: [np.ones(100, int), np.zeros(3, int)] for site in sites}
    ring = group.roster.layout.rings[0]
    for site in sites:
        sent = site.mask(vectors[site.name])
        if site.name == "site-02":
            sent = ring.pack(ring.unpack(memoryview(sent)[: ring.size], ring.count) + 1) + sent[ring.size :]
        group.add_masked(site.name, sent)
    group.close_masking()
    agreed(sites, group)
    released(sites, group)
    with refused("secure.out_of_range", "segment 0 = 6"):
        group.sum()


def test_a_message_counts_once_and_in_its_stage() -> None:
    sites = sites_of(5)
    vectors, roster = vectors_of(sites), roster_of(sites)
    group = Group(roster)
    with refused("secure.closed", "site-01", "masked vector"):
        group.add_masked("site-01", b"")
    deals = {site.name: site.join(roster) for site in sites}
    other = roster_of(sites_of(5))
    for name in FIVE[:4]:
        group.add_deal(name, deals[name])
    group.add_deal("site-01", deals["site-01"])
    with refused("secure.roster_invalid", "stranger"):
        group.add_deal("stranger", deals["site-01"])
    with refused("secure.shares_invalid", "site-02", "did not sign"):
        group.add_deal("site-02", deals["site-01"])
    with refused("secure.shares_invalid", "site-02", "bytes"):
        group.add_deal("site-02", deals["site-02"][1:])
    group.close_dealing()
    with refused("secure.closed", "site-05"):
        group.add_deal("site-05", deals["site-05"])
    for site in sites[:4]:
        site.accept(group.delivery(site.name))
    masked(sites, group, vectors)
    with refused("secure.conflict", "site-01"):
        group.add_masked("site-01", bytes(roster.layout.size))
    with refused("secure.closed", "site-05"):
        group.add_masked("site-05", bytes(roster.layout.size))
    with refused("secure.survivors_invalid", "site-01"):
        group.add_signature("site-01", bytes(64))
    assert roster.context != other.context


@pytest.mark.parametrize("data", [b"", b"\xff" * 79, b"\xff" * 80], ids=["empty", "short", "padding"])
def test_bytes_that_are_no_masked_vector_are_refused(data: bytes) -> None:
    sites = sites_of(3)
    group = dealt(sites, roster_of(sites, segments=((27, 1), (25, 1 << 22))))
    with refused("contribution.malformed"):
        group.add_masked("site-01", data)


def test_an_upload_at_ten_members_is_below_the_bound() -> None:
    """Bytes that a site sends in addition to its vector."""
    sites = sites_of(10)
    roster = roster_of(sites)
    prekey = sites[0].member.prekeys("simulation", sites[0].identity)[0].encode()
    deal = sites[0].join(roster)
    group = dealt(sites, roster)
    masked(sites, group, vectors_of(sites))
    agreed(sites, group)
    shares = sites[0].release(group.signatures())
    assert (len(prekey), len(deal), 64, len(shares)) == (128, 1154, 64, 330)
    assert 128 + 1154 + 64 + 330 == message_bytes(10) <= 1800


def test_a_roster_with_a_flaw_opens_no_group() -> None:
    sites = sites_of(5)
    forged = listed(sites[0]).model_copy(update={"mask": listed(sites[1]).share})
    roster = changed(roster_of(sites), members=(forged, *map(listed, sites[1:])))
    with refused("secure.roster_invalid", "site-01", "did not sign"):
        Group(roster)
