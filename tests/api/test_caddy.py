"""The committed Caddyfile in front of a real server: https from its own authority, nothing held up, everybody named."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from ferret_api.sizing import Sizing
from ferret_sdk.http import certificates
from tests.api.conftest import ADMIN, ASSIGNMENT, bearer
from tests.api.receiver import eventually

pytestmark = [pytest.mark.timeout(60)]

ROOT = Path(__file__).parents[2]
NAME = "ferret.lab"
HSTS = "max-age=31622400"
SIGN_IN = "/api/v1/session"
WRONG = {"token": "x" * 43}


class Front(NamedTuple):
    """A service behind Caddy: ``url`` is Caddy's address, ``live`` the server behind it."""

    url: str
    plain_port: int
    authority: Path
    live: Any

    def client(self, address: str = "127.0.0.1") -> httpx.Client:
        """Somebody who comes from ``address`` and was given the authority."""
        transport = httpx.HTTPTransport(verify=certificates.context(self.authority), local_address=address)
        return httpx.Client(base_url=self.url, transport=transport, timeout=20)

    def admin(self) -> httpx.Client:
        client = self.client()
        client.headers.update(bearer(ADMIN))
        return client


@pytest.fixture
def caddy(need: Callable[[bool, str], None]) -> str:
    program = shutil.which("caddy")
    need(program is not None, "caddy on PATH: apt-get install caddy")
    return str(program)


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The laboratory's name leads to this machine."""
    getaddrinfo = socket.getaddrinfo

    def look_up(host: Any, *rest: Any, **options: Any) -> Any:
        return getaddrinfo("127.0.0.1" if host in {NAME, NAME.encode()} else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.fixture
def front(caddy: str, resolved: None, serve: Any, make_settings: Any, tmp_path: Path) -> Iterator[Front]:
    port, plain_port, control_port = free_ports(3)
    url = f"https://{NAME}:{port}"
    live = serve(make_settings(public_url=url, trusted_proxies="127.0.0.1", stream_poll_seconds=0.05))
    config = adapted(caddy, tmp_path, url, f"127.0.0.1:{live.port}")
    # Only root may open port 80.
    config["apps"]["http"]["http_port"] = plain_port
    config["admin"] = {"listen": f"127.0.0.1:{control_port}"}
    (tmp_path / "caddy.json").write_text(json.dumps(config))
    command = [caddy, "run", "--config", "caddy.json"]
    with (tmp_path / "caddy.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), stderr=log)
    try:
        front = Front(url, plain_port, tmp_path / "caddy/pki/authorities/local/root.crt", live)
        wait_until_it_serves(front, control_port, tmp_path / "caddy.log")
        yield front
        process.terminate()
        assert process.wait(10) == 0
    finally:
        process.kill()


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports


def environment(home: Path) -> dict[str, str]:
    return os.environ | {"HOME": str(home), "XDG_DATA_HOME": str(home), "XDG_CONFIG_HOME": str(home)}


def adapted(caddy: str, home: Path, url: str, api: str, tls: str = "internal") -> dict[str, Any]:
    """The Caddyfile as Caddy reads it."""
    settings = {"FERRET_PUBLIC_URL": url, "FERRET_API": api, "FERRET_TLS": tls}
    command = [caddy, "adapt", "--config", str(ROOT / "Caddyfile")]
    done = subprocess.run(command, env=environment(home) | settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "not formatted" not in done.stderr
    return json.loads(done.stdout)


def wait_until_it_serves(front: Front, control_port: int, log: Path) -> None:
    for _ in range(200):
        try:
            # What the health check of docker-compose.yml asks.
            httpx.get(f"http://127.0.0.1:{control_port}/config/").raise_for_status()
            with front.client() as client:
                client.get("/healthz").raise_for_status()
            return
        except (httpx.TransportError, OSError):
            time.sleep(0.05)
    raise AssertionError(log.read_text())


def test_who_knows_the_authority_sees_a_padlock_and_the_api_knows_that_it_is_https(front: Front) -> None:
    with front.client() as browser:
        page = browser.get("/")
        assert page.text.startswith("<!doctype html>")
        assert page.headers["strict-transport-security"] == HSTS
        signed_in = browser.post("/api/v1/session", json={"token": ADMIN}, headers={"Origin": front.url})
        assert signed_in.status_code == 204
        assert "; secure" in signed_in.headers["set-cookie"].lower()
        assert browser.get("/api/v1/experiments").status_code == 200
    assert httpx.get(f"http://{NAME}:{front.plain_port}/x").headers["location"].startswith(f"https://{NAME}")
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(front.url, verify=ssl.create_default_context())


def test_an_event_arrives_while_its_stream_goes_on_and_a_reader_that_leaves_is_gone(front: Front) -> None:
    experiment_id = front.live.site.submit()
    with (
        front.admin() as admin,
        admin.stream("GET", f"/api/v1/experiments/{experiment_id}/events/stream") as stream,
    ):
        lines = stream.iter_lines()
        for _ in range(2):
            front.live.site.append(experiment_id)
            assert next(line for line in lines if "contribution.accepted" in line)
        assert front.live.app.state.feeds.streams == 1
    eventually(lambda: front.live.app.state.feeds.streams == 0)


def test_a_held_question_is_answered_as_soon_as_there_is_work(front: Front) -> None:
    site, groups = front.live.site, front.live.app.state.long_poll_groups
    experiment_id = site.running(participants={"edge": 2, "simulated": 0})
    token = site.enrol(experiment_id, "site-a")
    with front.client() as participant, ThreadPoolExecutor(1) as pool:
        participant.headers.update(bearer(token))
        tag = participant.get(ASSIGNMENT).headers["etag"]
        hold = {"Prefer": "wait=20", "If-None-Match": tag}
        answer = pool.submit(participant.get, ASSIGNMENT, headers=hold)
        eventually(lambda: groups.held == 1)
        begin = time.monotonic()
        site.open_round(experiment_id, edge=["site-a"])
        lease = answer.result(10).json()["assignment"]
        assert time.monotonic() - begin < 5
        assert lease["task"]["participant"] == "site-a"


def test_an_upload_arrives_and_what_is_too_large_is_refused_by_the_api(front: Front) -> None:
    member = front.live.site.member()
    with front.client() as participant:
        participant.headers["Authorization"] = member.client.headers["Authorization"]
        through = member._replace(client=participant)
        refused = through.upload(bytes(4 << 20))
        assert (refused.status_code, refused.json()["code"]) == (413, "request.too_large")
        assert through.upload(member.blob()).status_code == 201


def test_the_audit_log_has_the_clients_address_whatever_it_says_of_itself(front: Front) -> None:
    forged = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "http", "Forwarded": "for=203.0.113.7"}
    with front.client("127.0.0.2") as stranger:
        assert stranger.post(SIGN_IN, json=WRONG, headers=forged).status_code == 401
    around = httpx.HTTPTransport(local_address="127.0.0.3")
    with httpx.Client(base_url=front.live.url, transport=around) as beside_caddy:
        assert beside_caddy.post(SIGN_IN, json=WRONG, headers=forged).status_code == 401
    addresses = [entry["detail"]["address"] for entry in front.live.site.audit(action="sign_in.failed")]
    assert sorted(addresses) == ["127.0.0.2", "127.0.0.3"]


def test_it_gives_up_an_idle_connection_before_the_api_does(caddy: str, tmp_path: Path) -> None:
    config = json.dumps(adapted(caddy, tmp_path, f"https://{NAME}", "api:8765"))
    (idle,) = re.findall(r'"keep_alive": \{"idle_timeout": (\d+)\}', config)
    assert int(idle) / 1e9 < Sizing.keep_alive_seconds


def test_it_spreads_requests_over_all_that_it_is_given(caddy: str, tmp_path: Path) -> None:
    config = json.dumps(adapted(caddy, tmp_path, f"https://{NAME}", "api:8765 api-2:8765"))
    assert '"upstreams": [{"dial": "api:8765"}, {"dial": "api-2:8765"}]' in config


@pytest.mark.parametrize(("tls", "issuer"), [("internal", "internal"), ("you@example.org", "acme")])
def test_a_certificate_comes_from_its_own_authority_or_in_somebodys_name(
    caddy: str, tmp_path: Path, tls: str, issuer: str
) -> None:
    (policy,) = adapted(caddy, tmp_path, f"https://{NAME}", "api:8765", tls)["apps"]["tls"]["automation"]["policies"]
    assert policy["subjects"] == [NAME]
    assert policy["issuers"][0]["module"] == issuer
    assert policy["issuers"][0].get("email", "internal") == tls
