"""Cookies of a service on https bear a prefix by which browsers take them from this host alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import open_site
from tests.api.identity_provider import Forger, settings

URL = "/api/v1"
HOST = "https://testserver"


@pytest.fixture
def provided(make_settings: Callable[..., Any], forger: Forger) -> Iterator[Any]:
    with open_site(make_settings(**settings(forger.url), public_url=HOST)) as site:
        yield site


def browser(site: Any, base_url: str = HOST) -> TestClient:
    return TestClient(site.app, base_url=base_url, headers={"Origin": base_url})


def attributes(answer: Any) -> set[str]:
    return set(answer.headers["Set-Cookie"].partition("; ")[2].split("; "))


def test_over_https_every_cookie_has_the_prefix_and_what_browsers_demand_of_it(provided: Any, forger: Forger) -> None:
    client = browser(provided)
    begun = client.post(f"{URL}/sign-in/oidc")
    ended = client.post(f"{URL}/session/oidc", json=forger.agree(begun.json()["url"]))
    signed_in = browser(provided).post(f"{URL}/session", json={"token": provided.context.admin.value})
    for answer in (begun, ended, signed_in):
        for header in answer.headers.get_list("Set-Cookie"):
            assert header.startswith("__Host-ferret_")
            assert {"Secure", "HttpOnly", "Path=/", "SameSite=strict"} <= set(header.split("; "))
            assert "Domain" not in header
    assert client.get(f"{URL}/me").status_code == 200
    signed_out = client.delete(f"{URL}/session")
    assert signed_out.headers["Set-Cookie"].startswith("__Host-ferret_")
    assert "Secure" in attributes(signed_out), "without it a browser keeps the cookie"
    assert client.get(f"{URL}/me").status_code == 401


def test_over_https_a_cookie_without_the_prefix_signs_nobody_in(site: Any) -> None:
    """A neighbouring name of the same domain could have set it."""
    plain = site.browser()
    name = site.context.admin.cookie
    secret = plain.cookies[name]
    for cookie, status in ((name, 401), (f"__Host-{name}", 200)):
        client = TestClient(site.app, base_url=HOST, headers={"Cookie": f"{cookie}={secret}", "Origin": HOST})
        assert client.get(f"{URL}/me").status_code == status


def test_over_plain_http_the_cookie_has_no_prefix_and_works(site: Any) -> None:
    client = browser(site, "http://testserver")
    assert "Set-Cookie" not in client.post(f"{URL}/session", json={"token": "guess"}).headers
    answer = client.post(f"{URL}/session", json={"token": site.context.admin.value})
    assert answer.headers["Set-Cookie"].startswith(f"ferret_{site.context.admin.fingerprint}=")
    assert {"HttpOnly", "SameSite=strict"} <= attributes(answer)
    assert "Secure" not in attributes(answer)
    assert site.context.admin.value not in answer.headers["Set-Cookie"]
    assert client.get(f"{URL}/me").status_code == 200
