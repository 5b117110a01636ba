"""``ferret serve --tls-cert … --tls-key …``: browsers and the tools of this machine come by https, others do not."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from tests.ferret_cli.commands.test_serve import child, eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

Written = dict[str, str]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def write(authority: trustme.CA, tmp_path: Path) -> Callable[..., Written]:
    """A certificate for the names, as the settings that name its files."""

    def write(*names: str, **options: Any) -> Written:
        issued = authority.issue_cert(*names, **options)
        cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
        cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        key.touch(0o600)
        key.write_bytes(issued.private_key_pem.bytes())
        return {"FERRET_TLS_CERT": str(cert), "FERRET_TLS_KEY": str(key)}

    return write


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """A client that knows the authority and looks at the name, as browsers do."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def shown_certificate(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=10)


@pytest.mark.slow
def test_everybody_comes_by_https(serve, ferret, home, free_port, write, authority) -> None:
    """Also under leases so short that a child without a sign of life would be replaced within six seconds."""
    served = serve(FERRET_LEASE_SECONDS="12", **write("localhost", "127.0.0.1"))
    address, token = served.address().split("/#ticket=")
    assert address == f"https://127.0.0.1:{free_port}"
    first = child(served.process.pid, "-m ferret_api")
    announced = json.loads((home / "server.json").read_text())
    assert announced["url"] == address

    with httpx.Client(base_url=address, verify=trusting(authority), timeout=20) as browser:
        signed_in = browser.post("/api/v1/session", json={"token": token})
        assert signed_in.status_code == 204
        assert "; secure" in signed_in.headers["set-cookie"].lower()
        assert "strict-transport-security" not in signed_in.headers, "an address is no name, and the port is not alone"
        page = browser.get("/", headers={"Host": "ferret.example.org"})
        assert page.status_code == 421

    assert ferret("dashboard").stdout.startswith(f"{address}/#ticket=")

    # The command line of this home finds it, and trusts it though nobody else knows the authority.
    assert json.loads(ferret("experiment", "list", "--json").stdout) == {"items": []}
    (checked,) = [c for c in json.loads(ferret("doctor", "--json").stdout)["checks"] if c["name"] == "server"]
    assert checked["ok"] is True
    assert checked["detail"].startswith(f"running at {address}; its certificate is valid for ")
    stranger = ferret("experiment", "list", "--url", f"https://localhost:{free_port}")
    assert stranger.returncode != 0
    assert "authority that is not known here" in stranger.stderr
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{free_port}/healthz")

    # It lives on under the supervisor's questions, and is replaced when it answers none.
    time.sleep(8)
    assert child(served.process.pid, "-m ferret_api") == first
    assert "api hangs" not in served.said.read_text()
    os.kill(first, signal.SIGSTOP)
    eventually(lambda: child(served.process.pid, "-m ferret_api") not in {None, first})
    assert "api hangs" in served.said.read_text()
    eventually(lambda: ferret("experiment", "list").returncode == 0)
    assert served.stop() == 0
    assert "Traceback" not in (home / "logs/api.log").read_text()


@pytest.mark.slow
def test_a_renewed_certificate_is_shown_without_a_restart_and_a_bad_one_never(
    serve, ferret, home, free_port, write
) -> None:
    files = write("127.0.0.1")
    served = serve(**files)
    served.address()
    before, api = shown_certificate(free_port), child(served.process.pid, "-m ferret_api")

    Path(files["FERRET_TLS_CERT"]).write_text("half a certificate")
    eventually(lambda: "the previous one stays in use" in (home / "logs/api.log").read_text())
    assert shown_certificate(free_port) == before

    write("127.0.0.1")
    eventually(lambda: shown_certificate(free_port) != before)
    assert child(served.process.pid, "-m ferret_api") == api
    assert "the certificate was renewed" in (home / "logs/api.log").read_text()
    assert ferret("experiment", "list").returncode == 0


@pytest.mark.slow
def test_an_address_for_everybody_is_the_certificates_first_name(serve, ferret, home, free_port, write) -> None:
    served = serve(FERRET_HOST="0.0.0.0", **write("ferret.lab", "10.1.2.3"))
    assert served.address().startswith(f"https://ferret.lab:{free_port}/#ticket=")
    assert json.loads((home / "server.json").read_text())["url"] == f"https://127.0.0.1:{free_port}"
    assert ferret("experiment", "list").returncode == 0

    context = ssl.create_default_context(cadata=Path(write("x")["FERRET_TLS_CERT"]).read_text())
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with httpx.Client(verify=context) as browser:
        page = browser.get(f"https://127.0.0.1:{free_port}/", headers={"Host": f"ferret.lab:{free_port}"})
    assert page.status_code == 200, "the service answers to the certificate's names"
    assert page.headers["strict-transport-security"] == "max-age=31622400"


@pytest.mark.parametrize(
    ("names", "options", "extra", "said"),
    [
        (
            ["ferret.lab"],
            {},
            {},
            ["is for ferret.lab, and clients reach this server as 127.0.0.1", "FERRET_PUBLIC_URL"],
        ),
        (["127.0.0.1"], {}, {"FERRET_TLS_KEY": ""}, ["FERRET_TLS_KEY", "--tls-key"]),
        (["127.0.0.1"], {"days": -2}, {}, ["expired on", "renew it"]),
        (["127.0.0.1"], {}, {"FERRET_PUBLIC_URL": "http://ferret.lab"}, ["FERRET_PUBLIC_URL", "https://"]),
    ],
)
def test_what_cannot_work_is_told_before_anything_starts(
    ferret_in_process, home, free_port, write, names, options, extra, said
) -> None:
    if days := options.get("days"):
        now = datetime.now(UTC)
        options = {"not_before": now - timedelta(days=9), "not_after": now + timedelta(days=days)}
    done = ferret_in_process("serve", "--port", free_port, **{**write(*names, **options), **extra})
    assert done.returncode == 2
    assert [word for word in said if word not in done.stderr] == []
    assert not home.exists()


def test_a_key_that_others_can_read_is_refused(ferret_in_process, home, write, free_port) -> None:
    files = write("127.0.0.1")
    Path(files["FERRET_TLS_KEY"]).chmod(0o644)
    arguments = ["--tls-cert", files["FERRET_TLS_CERT"], "--tls-key", files["FERRET_TLS_KEY"]]
    done = ferret_in_process("serve", "--port", free_port, *arguments)
    assert done.returncode == 2
    assert "chmod 600" in done.stderr
    assert not home.exists()
    with socket.socket() as still_free:
        still_free.bind(("127.0.0.1", free_port))
