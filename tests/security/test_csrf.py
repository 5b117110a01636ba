"""A page of another server cannot use the cookie of the dashboard, not even one on this host at another port."""

from __future__ import annotations

from typing import Any

import pytest

FORGED = [
    {"Origin": "http://testserver:8000"},
    {"Origin": "http://evil.testserver"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "file://testserver"},
    {"Origin": "http://testserver@evil.example"},
    {"Origin": "http://testserver", "Sec-Fetch-Site": "same-site"},
    {"Origin": "http://testserver", "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {},
]
OWN = [
    {"Origin": "http://testserver"},
    {"Origin": "http://TestServer:80"},
    {"Origin": "https://testserver"},
    {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
]


def signed_in(site: Any) -> Any:
    browser = site.client()
    browser.post("/api/v1/session", json={"token": site.context.admin.value}).raise_for_status()
    return browser


@pytest.mark.parametrize("headers", FORGED, ids=str)
def test_nothing_is_changed_from_elsewhere(shared_site: Any, headers: dict[str, str]) -> None:
    browser, experiment_id = signed_in(shared_site), shared_site.submit()
    address = f"/api/v1/experiments/{experiment_id}"
    for method, path, body in (
        ("POST", f"{address}:cancel", None),
        ("DELETE", address, None),
        ("POST", "/api/v1/experiments", {}),
        ("DELETE", "/api/v1/session", None),
    ):
        answer = browser.request(method, path, headers=headers, json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "auth.cross_site"), path
    assert shared_site.show(experiment_id)["state"] == "queued"


@pytest.mark.parametrize("headers", OWN, ids=str)
def test_the_dashboards_own_page_may(shared_site: Any, headers: dict[str, str]) -> None:
    address = f"/api/v1/experiments/{shared_site.submit()}:cancel"
    assert signed_in(shared_site).post(address, headers=headers).status_code == 200


def test_the_ports_are_compared(serve: Any, make_settings: Any) -> None:
    live = serve(make_settings())
    browser, address = signed_in(live.site), f"/api/v1/experiments/{live.site.submit()}:cancel"
    own = {"Host": f"ferret.localhost:{live.port}", "Origin": f"http://ferret.localhost:{live.port}"}
    assert browser.post(address, headers={**own, "Origin": "http://ferret.localhost"}).status_code == 403
    assert browser.post(address, headers=own).status_code == 200


def test_a_proxy_that_asks_under_another_name_is_the_public_url(make_settings: Any) -> None:
    from tests.api.conftest import open_site

    with open_site(make_settings(public_url="https://ferret.example.org/")) as site:
        address = f"/api/v1/experiments/{site.submit()}:cancel"
        for origin, status in (("https://ferret.example.com", 403), ("https://ferret.example.org", 200)):
            assert signed_in(site).post(address, headers={"Origin": origin}).status_code == status


def test_a_program_with_the_token_needs_no_origin(shared_site: Any) -> None:
    assert shared_site.move(shared_site.submit(), "cancel").status_code == 200
