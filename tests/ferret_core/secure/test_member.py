"""A site's promises against its server: no step twice, never both shares of a dealer, one model and one roster."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.signatures import new_key, public_key, sign
from ferret_core.secure.member import Demands, Member, SurvivorStatement, encode_signatures
from ferret_core.secure.roster import Origin
from ferret_core.secure.shares import Deal, part_size
from tests.ferret_core.secure.groups import (
    ORIGIN,
    Site,
    agreed,
    changed,
    dealt,
    listed,
    masked,
    roster_of,
    sites_of,
    vectors_of,
)
from tests.refusals import refused

NAMES = [f"site-0{number}" for number in range(1, 6)]


def to_masks(sites: list[Site], **changes: Any) -> Any:
    """A group of the sites in which all have sent their vectors."""
    group = dealt(sites, roster_of(sites, **changes))
    masked(sites, group, vectors_of(sites))
    return group


def test_the_two_shares_of_a_dealer_are_never_both_there_to_be_released() -> None:
    """Until it agrees a member holds both and releases none; then it holds, and releases, one of each dealer."""
    sites = sites_of(5)
    site = sites[0]
    group = to_masks(sites)
    both = {each.dealer: (each.seed, each.mask) for each in site.member.attempt.shares}
    with refused("secure.closed", "agreed"):
        site.member.release(b"")
    site.agree(NAMES[:4])
    text = site.member.model_dump_json()
    for dealer, (seed, mask) in both.items():
        assert (seed in text, mask in text) == (dealer != "site-05", dealer == "site-05")
    assert both.keys() == {*NAMES}
    with refused("secure.conflict", "agrees once"):
        site.member.agree(NAMES, site.identity)
    for other in sites[1:4]:
        other.agree(NAMES[:4])
    group.survivors = tuple(NAMES[:4])
    agreed(sites, group)
    shares = site.release(group.signatures())
    assert shares.hex() == "".join(both[name][name == "site-05"] for name in NAMES)
    with refused("secure.conflict", "agrees once"):
        site.member.agree(NAMES, site.identity)
    assert site.member.agree(NAMES[:4], site.identity).release(b"").message == shares, "sent again after a restart"


def test_no_sequence_of_lists_and_kills_brings_out_both_shares_of_a_dealer() -> None:
    """All other members collude, and sign every list. A kill loses the step that was not yet on disk, with its
    message."""
    sites = sites_of(5)
    group = to_masks(sites)
    start, roster = sites[0].member, group.roster
    lists = [NAMES, NAMES[:4], [NAMES[0], *NAMES[2:]]]
    signed = []
    for survivors in lists:
        dropped = tuple(name for name in NAMES if name not in survivors)
        statement = SurvivorStatement(roster.context, tuple(survivors), dropped)
        colluders = [site for site in sites[1:] if site.name in survivors]
        signatures = {site.name: sign(site.identity, statement) for site in colluders}
        signed.append((survivors, statement, signatures))
    both = {each.dealer: {each.seed: "seed", each.mask: "mask"} for each in start.attempt.shares}
    draws, complete = random.Random(1), 0
    for _ in range(60):
        disk, sent = start.model_dump_json(), dict[str, set[str]]()
        for _ in range(6):
            member, (survivors, statement, signatures) = Member.model_validate_json(disk), draws.choice(signed)
            try:
                if draws.random() < 0.5:
                    stepped = member.agree(survivors, sites[0].identity)
                else:
                    own = {NAMES[0]: sign(sites[0].identity, statement)} if draws.random() < 0.5 else {}
                    stepped = member.release(encode_signatures(roster, signatures | own))
            except FerretError:
                continue
            if draws.random() < 0.3:
                continue
            disk = stepped.model_dump_json()
            if stepped.attempt.stage == "released":
                shares = [stepped.message[begin : begin + 33].hex() for begin in range(0, 5 * 33, 33)]
                for name, share in zip(NAMES, shares, strict=True):
                    sent.setdefault(name, set()).add(both[name][share])
        complete += bool(sent)
        assert all(len(kinds) == 1 for kinds in sent.values())
    assert complete > 10


@pytest.mark.parametrize(("stage", "erased"), [("accept", ["share"]), ("mask", ["share", "mask", "seed"])])
def test_a_state_keeps_no_secret_that_no_later_step_needs(stage: str, erased: list[str]) -> None:
    sites = sites_of(3)
    roster = roster_of(sites)
    site = sites[0]
    site.join(roster)
    attempt = site.member.attempt
    secrets = {"share": attempt.keys.share, "mask": attempt.keys.mask, "seed": attempt.seed}
    assert all(secret in site.member.model_dump_json() for secret in secrets.values())
    group = dealt(sites, roster)
    if stage == "mask":
        masked(sites, group, vectors_of(sites))
    text = site.member.model_dump_json()
    assert sorted(name for name, secret in secrets.items() if secret not in text) == sorted(erased)


def test_no_secret_is_in_a_representation_or_an_error() -> None:
    sites = sites_of(3)
    dealt(sites, roster_of(sites))
    for site in sites:
        text = site.member.model_dump_json()
        held = {json.loads(text)["attempt"]["seed"], json.loads(text)["attempt"]["shares"][0]["seed"]}
        assert [secret for secret in held if secret in repr(site.member)] == []
        with pytest.raises(ValueError) as caught:
            Member.model_validate_json(text.replace('"stage":"ready"', '"stage":"dealt"'))
        assert [secret for secret in held if secret in str(caught.value)] == []


def test_a_vector_is_masked_once() -> None:
    """Two vectors under the same masks would differ by the difference of the vectors."""
    sites = sites_of(3)
    dealt(sites, roster_of(sites))
    vector = vectors_of(sites)["site-01"]
    sites[0].mask(vector)
    with refused("secure.closed", "ready"):
        sites[0].member.mask(vector)
    with refused("secure.closed", "dealt"):
        sites[0].member.accept(b"")


@pytest.mark.parametrize("wrong", [-1, 2], ids=["below", "above"])
def test_an_entry_outside_its_range_is_not_masked(wrong: int) -> None:
    sites = sites_of(3)
    dealt(sites, roster_of(sites))
    vector = [np.zeros(100, int), np.zeros(3, int)]
    vector[0][9] = wrong
    with refused("secure.out_of_range", f"segment 0 = {wrong}", "0 … 1"):
        sites[0].member.mask(vector)
    with refused("secure.out_of_range", "float64"):
        sites[0].member.mask([np.zeros(100), np.zeros(3, int)])
    with refused("secure.out_of_range", "shape"):
        sites[0].member.mask(vector[:1])


def test_a_one_time_key_is_used_once() -> None:
    """A server that knows a key's secret from an earlier attempt has no use for it."""
    sites = sites_of(3)
    stale = roster_of(sites)
    sites[0].join(stale)
    assert len(sites[0].member.keys) == 1
    again = ORIGIN.model_copy(update={"attempt": 2})
    with refused("secure.roster_invalid", "site-01", "used before"):
        sites[0].join(changed(stale, origin=again))


def test_the_same_roster_again_is_the_same_deal() -> None:
    sites = sites_of(3)
    roster = roster_of(sites)
    deal = sites[0].join(roster)
    assert sites[0].join(roster) == deal
    assert Site("other").member.attempt is None


@pytest.mark.parametrize(
    "changes",
    [
        {"base_digest": "bb" * 32},
        {"spec": "5f" * 32},
        {"previous": "1e" * 32},
        {"round_seed": 7},
        {"attempt": 2},
        {"round": 4},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_round_that_the_site_does_not_know_is_refused(changes: dict[str, Any]) -> None:
    sites = sites_of(3)
    (field,) = changes
    with refused("secure.roster_invalid", field=f"origin.{field}"):
        sites[0].join(roster_of(sites, ORIGIN.model_copy(update=changes)), ORIGIN)


def test_a_server_with_another_model_for_one_site_is_found_by_every_other() -> None:
    """Each site is shown a roster for the model that it has; their contexts differ, and so what they sign."""
    sites = sites_of(3)
    roster = roster_of(sites)
    other = roster_of(sites, ORIGIN.model_copy(update={"base_digest": "bb" * 32}))
    deals = {site.name: (site, site.join(other if site.name == "site-03" else roster)) for site in sites}
    delivery = parts(deals, "site-01")
    with refused("secure.shares_invalid", "site-03", "model"):
        sites[0].accept(delivery)


def test_a_server_with_two_rosters_is_found() -> None:
    sites, stranger = sites_of(4), Site("zoe")
    roster, swapped = roster_of(sites), roster_of([*sites[:3], stranger])
    deals = {site.name: (site, site.join(roster if place % 2 else swapped)) for place, site in enumerate(sites[:3])}
    with refused("secure.shares_invalid", "site-02", "roster"):
        sites[0].accept(parts(deals, "site-01"))


def parts(deals: dict[str, tuple[Site, bytes]], holder: str) -> bytes:
    """A delivery by a server that checks nothing: each deal is read with its own dealer's roster."""
    found = b""
    for name, (site, message) in deals.items():
        if name != holder:
            roster = site.member.attempt.roster
            place = roster.place(holder)
            found += bytes([roster.place(name)]) + Deal.decode(message, roster, name).part(place)
    return found


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], "site-02"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "site-03"),
        (lambda data: data[1:], "delivery"),
        (lambda data: data[: len(data) // 2] * 2, "delivery"),
        (lambda data: bytes([0]) + data[1:], "delivery"),
        (lambda data: bytes([9]) + data[1:], "delivery"),
    ],
    ids=["a leaf", "a signature", "short", "twice", "itself", "nobody"],
)
def test_a_changed_delivery_is_refused(spoil: Callable[[bytes], bytes], named: str) -> None:
    sites = sites_of(3)
    roster = roster_of(sites)
    deals = {site.name: (site, site.join(roster)) for site in sites}
    with refused("secure.shares_invalid", named):
        sites[0].accept(spoil(parts(deals, "site-01")))
    assert len(parts(deals, "site-01")) == 2 * (1 + part_size(3, 0))


def test_too_few_dealers_are_refused() -> None:
    sites = sites_of(5)
    roster = roster_of(sites)
    deals = {site.name: (site, site.join(roster)) for site in sites[:3]}
    with refused("secure.too_few", "dealers = 3", "4"):
        sites[0].accept(parts(deals, "site-01"))


@pytest.mark.parametrize(
    ("survivors", "named"),
    [
        (NAMES[:3], "the sum needs 4"),
        (NAMES[1:], "site-01"),
        ([*NAMES[:4], "zoe"], "zoe"),
        ([*NAMES[:3], "site-01"], "each counted once"),
    ],
    ids=["few", "without me", "a stranger", "twice"],
)
def test_a_wrong_list_of_survivors_is_refused(survivors: list[str], named: str) -> None:
    sites = sites_of(5)
    to_masks(sites)
    with refused("secure.survivors_invalid", named):
        sites[0].member.agree(survivors, sites[0].identity)


def test_shares_leave_only_for_the_list_that_a_threshold_signed() -> None:
    """Four of five must sign; a server shows one site another list than the rest."""
    sites = sites_of(5)
    group = to_masks(sites)
    agreed(sites, group, ["site-01"])
    sites[0].agree(NAMES[:4])
    signatures = group.signatures()
    with refused("secure.survivors_invalid", "site-02", "this list"):
        sites[0].release(signatures)
    with refused("secure.too_few", "signatures = 3"):
        sites[1].release(signatures[: 3 * 65])
    for wrong in (signatures[1:], signatures[:65] * 4, signatures[:-65] + bytes([5]) + signatures[-64:]):
        with refused("secure.survivors_invalid", "signatures ="):
            sites[1].release(wrong)
    assert len(sites[1].release(signatures)) == 5 * 33


def test_a_site_refuses_a_sum_that_differs_by_one_member_from_another_of_the_round() -> None:
    """The difference of two sums, of the same members but one, would be that one's vector."""
    sites = sites_of(5)
    group = to_masks(sites)
    agreed(sites, group)
    again = ORIGIN.model_copy(update={"attempt": 2})
    with refused("secure.conflict", "site-05"):
        sites[0].join(roster_of(sites[:4], again))
    group = dealt(sites, roster_of(sites, again))
    masked(sites, group, vectors_of(sites))
    with refused("secure.conflict", "site-05"):
        sites[0].agree(NAMES[:4])
    sites[0].agree(NAMES)
    with refused("secure.conflict", "has joined round 3"):
        sites[0].step(sites[0].member.stocked())
        sites[0].join(roster_of([sites[0], *sites_of(5)[1:]], ORIGIN.model_copy(update={"round": 2})))


def test_a_round_is_repeated_with_those_that_survived_it() -> None:
    """The dropout of the first attempt is in the second group, and drops out again."""
    sites = sites_of(5)
    for attempt in (1, 2):
        group = dealt(sites, roster_of(sites, ORIGIN.model_copy(update={"attempt": attempt})))
        masked(sites, group, vectors_of(sites), ["site-05"])
        agreed(sites, group)
    assert [each.survivors for each in sites[0].member.agreements] == [tuple(NAMES[:4])] * 2


def test_the_next_round_may_have_other_members() -> None:
    sites = sites_of(5)
    group = to_masks(sites)
    agreed(sites, group)
    following = Origin(**{**ORIGIN.model_dump(), "round": 4, "base_digest": "bc" * 32})
    sites[0].join(roster_of(sites[:4], following))
    assert sites[0].member.agreements == ()


@pytest.mark.parametrize("pinned", [2, 3])
def test_pinned_peers_must_be_in_the_group_and_survive(pinned: int) -> None:
    sites = sites_of(5)
    peers = tuple(public_key(site.identity) for site in sites[: pinned + 1])
    demands = Demands(peers=peers, peers_required=3)
    roster = roster_of(sites)
    if pinned < 3:
        with refused("secure.peers_unknown", "peers = 2", "3"):
            sites[0].join(roster, demands=demands)
        return
    sites[0].join(roster, demands=demands)
    group = dealt(sites, roster)
    masked(sites, group, vectors_of(sites))
    with refused("secure.peers_unknown", "peers = 2"):
        sites[0].agree([name for name in NAMES if name != "site-02"])


def test_a_site_may_demand_more_members() -> None:
    sites = sites_of(4)
    with refused("secure.too_few", "members = 4", "5"):
        sites[0].join(roster_of(sites), demands=Demands(least=5))


def test_another_identity_under_the_sites_name_is_refused() -> None:
    sites = sites_of(3)
    roster = roster_of(sites)
    with refused("secure.roster_invalid", "site-01", "identity"):
        sites[0].member.join(roster, ORIGIN, new_key())
    with refused("secure.roster_invalid", "zoe"):
        Site("zoe").join(roster)
    assert listed(sites[0]) == roster.members[0]


def test_an_ended_attempt_leaves_the_unused_keys_alone() -> None:
    sites = sites_of(3)
    to_masks(sites)
    ended = sites[0].member.end()
    assert (ended.attempt, len(ended.keys), len(ended.stocked(8).keys)) == (None, 1, 8)
    with refused("secure.closed"):
        _ = ended.message
