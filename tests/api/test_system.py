"""What the service says of itself, how browsers sign in, and what Prometheus reads."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from prometheus_client.parser import text_string_to_metric_families


def test_info(site: Any) -> None:
    assert site.admin.get("/api/v1/info").json() == {
        "name": "ferret",
        "version": version("ferret-service"),
        "instance": site.context.admin.fingerprint,
        "database": "sqlite",
        "storage": "file",
        "formats": {"wire": 1, "projection": 1},
    }


def test_signing_in_sets_a_cookie_that_scripts_and_other_sites_cannot_use(site: Any) -> None:
    browser = site.client()
    answer = browser.post("/api/v1/session", json={"token": site.context.admin.value})
    assert answer.status_code == 204
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"ferret_{site.context.admin.fingerprint}=")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert site.context.admin.value not in cookie
    assert browser.get("/api/v1/experiments").status_code == 200
    assert browser.delete("/api/v1/session").status_code == 204
    assert browser.get("/api/v1/experiments").status_code == 401


def test_signing_in_over_https_keeps_the_cookie_to_https(site: Any) -> None:
    secure = site.client().post("https://testserver/api/v1/session", json={"token": site.context.admin.value})
    assert "Secure" in secure.headers["Set-Cookie"]


def test_a_wrong_token_signs_nobody_in(site: Any) -> None:
    answer = site.client().post("/api/v1/session", json={"token": "guess"})
    assert (answer.status_code, answer.json()["code"]) == (401, "auth.invalid")
    assert "Set-Cookie" not in answer.headers


def test_health_needs_nothing(site: Any) -> None:
    answer = site.client().get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_readiness_names_the_part_that_is_missing(site: Any) -> None:
    answer = site.client().get("/readyz")
    assert answer.status_code == 503
    found = answer.json()
    assert not found["ready"]
    assert found["database"] == found["migrations"] == {"ready": True, "detail": None}
    assert not found["broker"]["ready"]
    assert "start Redis" in found["broker"]["detail"]


def test_prometheus_reads_states_and_requests(site: Any) -> None:
    experiment_id = site.running()
    site.submit()
    site.open_round(experiment_id, simulated=["client-001"])
    for _ in range(3):
        site.admin.get(f"/api/v1/experiments/{experiment_id}")
    site.admin.get("/api/v1/experiments/exp_nobody")
    site.admin.get("/no/such/page")
    site.admin.request("BREW", "/no/such/page")
    text = site.admin.get("/metrics").text
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["ferret_experiments", ("state", "running")] == 1
    assert samples["ferret_experiments", ("state", "queued")] == 1
    assert samples["ferret_experiments", ("state", "failed")] == 0
    assert samples["ferret_rounds", ("state", "open")] == 1
    assert samples["ferret_assignments", ("state", "pending")] == 1
    assert samples["ferret_outbox_unsent",] > 0
    route = ("route", "/api/v1/experiments/{experiment_id}")
    assert samples["ferret_http_requests_total", ("method", "GET"), route, ("status", "200")] == 3
    assert samples["ferret_http_requests_total", ("method", "GET"), route, ("status", "404")] == 1
    assert samples["ferret_http_seconds_count", ("method", "GET"), route] == 4
    assert experiment_id not in text
    assert "/no/such/page" not in text
    assert "BREW" not in text
