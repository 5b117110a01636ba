"""ID tokens that a provider did not mean for this service, this sign-in or this time open nothing."""

from __future__ import annotations

import time
from typing import Any

import pytest
from joserfc.jwk import RSAKey
from starlette.testclient import TestClient

from ferret_api.oidc.provider import CLOCK_SECONDS
from tests.api.conftest import open_site
from tests.api.identity_provider import Forger, settings

URL = "/api/v1"


@pytest.fixture
def site(forged: Any) -> Any:
    return forged


def sign_in(site: Any, forger: Forger) -> tuple[TestClient, Any]:
    client = site.page()
    returned = forger.agree(client.post(f"{URL}/sign-in/oidc").raise_for_status().json()["url"])
    return client, client.post(f"{URL}/session/oidc", json=returned)


def refused(site: Any, forger: Forger) -> str:
    """The code with which the sign-in was refused; nobody is signed in then, and nobody has a new account."""
    before = site.admin.get(f"{URL}/users").json()["items"]
    client, answer = sign_in(site, forger)
    assert answer.status_code == 401
    assert client.get(f"{URL}/me").status_code == 401
    assert site.admin.get(f"{URL}/users").json()["items"] == before
    return answer.json()["code"]


def test_the_forger_can_be_honest(site: Any, forger: Forger) -> None:
    assert sign_in(site, forger)[1].status_code == 204


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://elsewhere.example"},
        {"iss": None},
        {"aud": "another service"},
        {"aud": "another service", "azp": "ferret"},
        {"aud": ["another service"], "azp": "ferret"},
        {"aud": ["ferret", "another service"], "azp": "another service"},
        {"aud": None},
        {"nonce": "of another sign-in"},
        {"nonce": None},
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 256},
        {"sub": 7},
        {"at_hash": "of another access token"},
    ],
    ids=str,
)
def test_claims_of_another_token_are_refused(site: Any, forger: Forger, claims: dict[str, Any]) -> None:
    forger.claims = claims
    assert refused(site, forger) == "oidc.token_invalid"


def test_a_key_with_a_new_id_is_taken_at_once_and_any_other_an_hour_later(
    site: Any, forger: Forger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kid, statuses in (("1", (204, 204)), ("2", (204, 204)), ("2", (401, 204))):
        forger.public = forger.key = RSAKey.generate_key(2048, {"kid": kid})
        forger.header = {"alg": "RS256", "kid": kid}
        assert sign_in(site, forger)[1].status_code == statuses[0]
        with monkeypatch.context() as patch:
            patch.setattr("ferret_api.oidc.provider.KEPT_SECONDS", -1)
            assert sign_in(site, forger)[1].status_code == statuses[1]


@pytest.mark.parametrize("signature", ["somebody else's", "none", "by the public key as a secret"])
def test_a_token_that_the_provider_did_not_sign_is_refused(site: Any, forger: Forger, signature: str) -> None:
    if signature == "none":
        forger.header = {"alg": "none", "kid": "1"}
    elif signature == "somebody else's":
        forger.key = RSAKey.generate_key(2048, {"kid": "1"})
    else:
        forger.sign_by_secret()
    assert refused(site, forger) == "oidc.token_invalid"


@pytest.mark.parametrize(
    "claims", [{"exp": -CLOCK_SECONDS - 5}, {"iat": CLOCK_SECONDS + 30}, {"nbf": CLOCK_SECONDS + 30}], ids=str
)
def test_clocks_that_differ_are_named(site: Any, forger: Forger, claims: dict[str, int]) -> None:
    now = int(time.time())
    forger.claims = {name: now + seconds for name, seconds in claims.items()}
    assert refused(site, forger) == "oidc.clock_skew"
    forger.claims = {"iat": now + CLOCK_SECONDS // 2, "nbf": now + CLOCK_SECONDS // 2}
    assert sign_in(site, forger)[1].status_code == 204, "a little is borne"


def test_a_code_without_its_verifier_is_worth_nothing(site: Any, forger: Forger) -> None:
    client = site.page()
    returned = forger.agree(client.post(f"{URL}/sign-in/oidc").json()["url"])
    forger.asked["code_challenge"] = "of another browser"
    answer = client.post(f"{URL}/session/oidc", json=returned)
    assert (answer.status_code, answer.json()["code"]) == (401, "oidc.refused")
    assert "code_verifier" in answer.json()["detail"]


def test_failures_are_counted_against_the_address(make_settings: Any, forger: Forger) -> None:
    with open_site(make_settings(**settings(forger.url), failures_per_minute=2)) as site:
        client = site.client()
        body = {"state": "x", "code": "x"}
        codes = [client.post(f"{URL}/session/oidc", json=body).json()["code"] for _ in range(3)]
        assert codes == ["oidc.state_mismatch", "oidc.state_mismatch", "request.too_many"]


def test_the_secret_and_the_code_are_told_to_nobody(site: Any, forger: Forger) -> None:
    forger.token = 400, {"error": "invalid_grant"}
    _, answer = sign_in(site, forger)
    text = answer.text + site.admin.get(f"{URL}/audit").text
    assert "a-code" not in text
    assert "client's secret" not in text + repr(site.context.settings)
