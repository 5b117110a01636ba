"""Headers of a reverse proxy count only if the operator has named the proxy."""

from __future__ import annotations

import httpx

from tests.api.conftest import ADMIN, bearer
from tests.api.conftest import make_settings as make_settings
from tests.api.conftest import serve as serve


def test_a_process_on_this_machine_cannot_choose_the_address_in_the_audit_log(serve, make_settings) -> None:
    live = serve(make_settings())
    forged = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
    with httpx.Client(base_url=live.url) as client:
        wrong = {"name": "anna", "password": "a wrong password"}
        assert client.post("/api/v1/session", json=wrong, headers=forged).status_code == 401
        found = client.get("/api/v1/audit", headers=bearer(ADMIN)).json()["items"]
    (failed,) = [entry for entry in found if entry["action"] == "sign_in.failed"]
    assert failed["detail"]["address"] == "127.0.0.1"
