"""Masks cancel in one context, and only there; the whole protocol matches the published vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ferret_core.protocol.signatures import public_key
from ferret_core.secure.group import Group
from ferret_core.secure.masks import MaskSum, pair_key, self_key
from ferret_core.secure.member import DealerShares, Dealt, Demands, Member
from ferret_core.secure.packing import PIECE, Layout, Segment, Vector
from ferret_core.secure.prekeys import PrekeySecret, public_half
from ferret_core.secure.roster import Roster, RosterMember
from ferret_core.secure.shares import Deal, make_deal
from tests.ferret_core.secure.groups import Site, as_lists, roster_of, sites_of

PATH = Path(__file__).parents[2] / "vectors" / "secure.json"
VECTORS = json.loads(PATH.read_text(encoding="utf-8"))
CONTEXT, OTHER = "ab" * 32, "ab" * 31 + "ac"


def test_the_stream_of_the_rfc() -> None:
    """RFC 8439, appendix A.1, test vector 1, as words of one, two and four bytes."""
    layout = Layout([Segment(2, 85), Segment(1, 21_845), Segment(2, 2**30)], 3)
    assert [ring.bits for ring in layout.rings] == [8, 16, 32]
    one, two, four = mask_of(bytes(32), layout)
    assert (one.tolist(), two.tolist(), four.tolist()) == ([0x76, 0xB8], [0xADE0], [0x903DF1A0, 0xE56A5D40])


def mask_of(key: bytes, layout: Layout) -> Vector:
    """The mask of a key, modulo the layout's rings."""
    masks = MaskSum()
    masks.add(key)
    return Layout([Segment(ring.count, ring.ones, wraps=True) for ring in layout.rings], 3).sum([], masks)


@pytest.mark.parametrize("odd", [None, 2], ids=["one context", "another model for one"])
def test_pair_masks_cancel_in_one_context_alone(odd: int | None) -> None:
    """A server that shows one member another model gets a sum that is as random as the masks."""
    layout = Layout([Segment(PIECE + 4000, 7, wraps=True), Segment(1000, 2**24 - 1, wraps=True)], 4)
    secrets = [PrekeySecret.new().mask for _ in range(4)]
    keys = [public_half(secret) for secret in secrets]
    masks = MaskSum()
    for place, secret in enumerate(secrets):
        others = [key for key in keys if key != keys[place]]
        masks.add_pairs(OTHER if place == odd else CONTEXT, secret, keys[place], others)
    total = layout.sum([], masks)
    if odd is None:
        assert not any(words.any() for words in total)
    else:
        counts, expected = np.bincount(total[0], minlength=8), len(total[0]) / 8
        assert float(((counts - expected) ** 2 / expected).sum()) < 27.9, "χ² of 7 degrees of freedom, p = 0.0002"


def from_vector() -> tuple[Roster, dict[str, Member], dict[str, Deal]]:
    """The roster of the vectors, and its members after their deals, with the drawn numbers of the vectors."""
    given = VECTORS["members"]
    keys = {each["name"]: PrekeySecret(mask=each["mask"], share=each["share"]) for each in given}
    listed = [
        RosterMember(
            name=each["name"],
            identity=public_key(each["identity"]),
            **keys[each["name"]].prekey(VECTORS["origin"]["experiment"], each["name"], each["identity"]).model_dump(),
        )
        for each in given
    ]
    roster = Roster.model_validate(
        {"origin": VECTORS["origin"], "members": listed, **{name: VECTORS[name] for name in ("group", "least")}}
        | {"colluders": VECTORS["colluders"], "segments": VECTORS["segments"]}
    )
    members, deals = dict[str, Member](), dict[str, Deal]()
    for each in given:
        name, drawn = each["name"], iter([int(number, 16) for number in each["coefficients"]])
        deal, own = make_deal(
            roster, name, keys[name], each["seed"], each["identity"], lambda _, drawn=drawn: next(drawn)
        )
        held = DealerShares(dealer=name, seed=own.seed.hex(), mask=own.mask.hex())
        dealt = Dealt(roster=roster, demands=Demands(), keys=keys[name], seed=each["seed"], own=held, deal="")
        members[name], deals[name] = Member(name=name, attempt=dealt), deal
    return roster, members, deals


def computed() -> dict[str, Any]:
    """Every value of the vectors from what they give: five members, of which the fourth drops out after its deal."""
    roster, members, deals = from_vector()
    given = {each["name"]: each for each in VECTORS["members"]}
    group = Group(roster)
    for name, deal in deals.items():
        group.add_deal(name, deal.encode())
    group.close_dealing()
    found: dict[str, Any] = {"context": roster.context, "bits": [ring.bits for ring in roster.layout.rings]}
    first, second = roster.members[:2]
    key = pair_key(given[first.name]["mask"], first.mask, second.mask, roster.context)
    found["pair_key"], found["pair_mask"] = key.hex(), as_lists(mask_of(key, roster.layout))
    own = self_key(given[first.name]["seed"], roster.context)
    found["self_key"], found["self_mask"] = own.hex(), as_lists(mask_of(own, roster.layout))
    found["deals"] = {name: deal.encode().hex() for name, deal in deals.items()}
    found["delivery"] = group.delivery(first.name).hex()
    members = {name: member.accept(group.delivery(name)) for name, member in members.items()}
    survivors = [name for name in members if name != roster.names[3]]
    for name in survivors:
        vector = [np.array(values) for values in given[name]["vector"]]
        members[name], pieces = members[name].mask(vector)
        group.add_masked(name, b"".join(pieces))
    found["masked"] = {name: group._masked[name].hex() for name in survivors}
    group.close_masking()
    for name in survivors:
        members[name] = members[name].agree(survivors, given[name]["identity"])
        group.add_signature(name, members[name].message)
    found["signatures"] = group.signatures().hex()
    for name in survivors:
        members[name] = members[name].release(group.signatures())
        group.add_shares(name, members[name].message)
    found["shares"] = {name: members[name].message.hex() for name in survivors}
    transcript = group.transcript()
    transcript.verify()
    found["seeds"], found["mask_secrets"] = dict(transcript.seeds), dict(transcript.mask_secrets)
    found["sum"] = as_lists(group.sum())
    return found


def test_the_published_vectors() -> None:
    found = computed()
    assert found.keys() == VECTORS["expected"].keys()
    for name, value in found.items():
        assert value == VECTORS["expected"][name], name
    opened = {each["name"]: (each["seed"], each["mask"]) for each in VECTORS["members"]}
    assert found["seeds"] == {name: opened[name][0] for name in found["masked"]}
    assert found["mask_secrets"] == {"site-4": opened["site-4"][1]}
    vectors = [each["vector"] for each in VECTORS["members"] if each["name"] in found["masked"]]
    assert found["sum"] == [np.sum(parts, axis=0).tolist() for parts in zip(*vectors, strict=True)]


def test_a_masked_vector_is_uniform() -> None:
    """Masks a vector of zeros, and compares the values of a ring with a uniform distribution by χ²."""
    sites = sites_of(3)
    roster = roster_of(sites, segments=((20_000, 1),))
    site = sites[0]
    site.join(roster)
    held = site.member.attempt
    (entries,) = mask_of(self_key(held.seed, roster.context), roster.layout)
    counts = np.bincount(entries, minlength=4)
    assert float(((counts - 5000) ** 2 / 5000).sum()) < 20, "3 degrees of freedom, p = 0.0002"
    assert isinstance(site, Site)
