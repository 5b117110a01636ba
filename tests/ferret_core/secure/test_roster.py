"""A roster binds members, keys, round and model; a flaw in it is named."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ferret_core.secure.prekeys import PrekeySecret
from ferret_core.secure.roster import Roster, RosterMember, threshold
from tests.ferret_core.secure.groups import ORIGIN, SEGMENTS, changed, listed, roster_of, sites_of
from tests.refusals import refused


@pytest.mark.parametrize(
    ("members", "colluders", "shares"), [(3, 1, 3), (5, 1, 4), (10, 1, 7), (50, 1, 34), (64, 1, 43), (10, 6, 9)]
)
def test_the_threshold(members: int, colluders: int, shares: int) -> None:
    assert threshold(members, colluders) == shares
    assert 2 * shares > members + colluders


@pytest.mark.parametrize("field", [*type(ORIGIN).model_fields, "group", "least", "colluders", "segments", "members"])
def test_every_value_is_in_the_context(field: str) -> None:
    sites = sites_of(5)
    roster = roster_of(sites)
    other = {
        "group": 2,
        "least": 4,
        "colluders": 0,
        "segments": ((100, 2), SEGMENTS[1]),
        "members": (*roster.members[:4], listed(sites[0]).model_copy(update={"name": "zoe"})),
    }
    values = {"experiment": "exp_0123456789abcdef", "round": 4, "attempt": 2, "previous": "", "round_seed": 1}
    origin = ORIGIN.model_copy(update={field: values.get(field, "ab" * 32)})
    changes: dict[str, Any] = {field: other[field]} if field in other else {"origin": origin}
    assert changed(roster, **changes).context != roster.context
    assert changed(roster).context == roster.context == Roster.model_validate_json(roster.model_dump_json()).context


def members() -> list[RosterMember]:
    return list(roster_of(sites_of(5)).members)


def altered(place: int, **values: str) -> list[RosterMember]:
    found = members()
    found[place] = found[place].model_copy(update=values)
    return found


def copied(field: str) -> list[RosterMember]:
    found = members()
    found[3] = found[3].model_copy(update={field: getattr(found[1], field)})
    return found


@pytest.mark.parametrize(
    ("listed", "named"),
    [
        (members()[::-1], "site-04"),
        ([*members()[:2], *members()[1:4]], "site-02"),
        (altered(2, signature="00" * 64), "site-03"),
        (altered(2, mask="1f" * 32), "site-03"),
        (altered(2, share="1f" * 32), "site-03"),
        (altered(2, identity="1f" * 32), "site-03"),
        (altered(2, name="site-03b"), "site-03b"),
        (altered(4, mask="00" * 32), "site-05"),
        (altered(4, share="01" + "00" * 31), "site-05"),
        (copied("identity"), "site-04"),
        (copied("mask"), "site-04"),
        (copied("share"), "site-04"),
    ],
    ids=[
        "order",
        "twice",
        "signature",
        "mask",
        "share",
        "identity",
        "name",
        "weak mask",
        "weak share",
        "same identity",
        "same mask",
        "same share",
    ],
)
def test_a_member_with_a_flaw_is_named(listed: list[RosterMember], named: str) -> None:
    with refused("secure.roster_invalid", named):
        changed(roster_of(sites_of(5)), members=tuple(listed)).verify()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"least": 3, "colluders": 2}, "least"),
        ({"least": 6}, "members"),
        ({"least": 8, "colluders": 6}, "members"),
        ({"segments": ((1, 2**30),)}, "segments"),
        ({"segments": ((1, 4094, True),)}, "segments"),
    ],
)
def test_bounds_that_no_sum_meets_are_refused(changes: dict[str, Any], field: str) -> None:
    with refused("secure.roster_invalid", field=field):
        changed(roster_of(sites_of(5)), **changes).verify()


def test_a_prekey_of_another_experiment_or_participant_is_refused() -> None:
    site = sites_of(1)[0]
    for experiment, name in (("exp_0123456789abcdef", "site-01"), ("simulation", "zoe")):
        prekey = PrekeySecret.new().prekey(experiment, name, site.identity)
        member = listed(site).model_copy(update=prekey.model_dump())
        with refused("secure.roster_invalid", "site-01", "did not sign"):
            changed(roster_of(sites_of(5)), members=(member, *members()[1:])).verify()


@pytest.mark.parametrize("count", [2, 65])
def test_a_group_has_3_to_64_members(count: int) -> None:
    with pytest.raises(ValidationError, match="members"):
        roster_of(sites_of(count))


@pytest.mark.parametrize("segment", [(5,), (0, 1), (1, 2**32), (1, 3, 2), (1, 3, 1, 1)])
def test_what_is_no_segment_is_refused(segment: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError):
        changed(roster_of(sites_of(3)), segments=(segment,))
