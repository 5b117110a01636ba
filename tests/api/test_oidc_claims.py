from __future__ import annotations

from typing import Any

import pytest

from ferret_api.oidc import claims
from ferret_core.protocol.roles import Role

ROLES = {"staff": Role.VIEWER, "research": Role.RESEARCHER, "cn=admins,dc=hospital": Role.ADMIN}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"groups": ["staff", "research", "choir"]}, Role.RESEARCHER),
        ({"groups": ["cn=admins,dc=hospital", "staff"]}, Role.ADMIN),
        ({"groups": "staff"}, Role.VIEWER),
        ({"groups": ["choir"]}, None),
        ({"groups": "staff research"}, None),
        ({"groups": {"staff": True}}, None),
        ({"groups": [7, None, ["staff"]]}, None),
        ({"groups": []}, None),
        ({}, None),
    ],
)
def test_the_highest_role_of_the_claims_values_counts_and_without_one_there_is_none(
    given: dict[str, Any], expected: Role | None
) -> None:
    assert claims.role(given, "groups", ROLES, None) == expected
    assert claims.role(given, "groups", ROLES, Role.VIEWER) == (expected or Role.VIEWER)


@pytest.mark.parametrize(
    ("claim", "given"),
    [
        ("realm_access.roles", {"realm_access": {"roles": ["staff"]}}),
        ("https://hospital.example/roles", {"https://hospital.example/roles": ["staff"]}),
        ("a.b", {"a.b": "staff", "a": {"b": "research"}}),
    ],
)
def test_dots_lead_into_objects_unless_they_are_part_of_the_name(claim: str, given: dict[str, Any]) -> None:
    assert claims.role(given, claim, ROLES, None) == Role.VIEWER


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"preferred_username": "Ada.Lovelace@hospital.example"}, "ada.lovelace@hospital.example"),
        ({"preferred_username": "HOSPITAL\\ada lovelace"}, "hospital-ada-lovelace"),
        ({"preferred_username": "-ada"}, "ada"),
        ({"preferred_username": "x" * 300}, "x" * 80),
        ({"preferred_username": "阿达"}, "user"),
        ({"preferred_username": 7}, "10ea"),
        ({}, "10ea"),
    ],
)
def test_a_name_is_one_that_an_account_may_have(given: dict[str, Any], name: str) -> None:
    assert claims.account_name({"sub": "10ea", **given}, "preferred_username") == name
