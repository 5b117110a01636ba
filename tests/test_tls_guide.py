"""The commands of docs/operators/tls.md make a valid certificate; the page agrees with docker-compose.yml."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ferret_core.system.tls_certificate import Certificate
from ferret_sdk.http import certificates

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs/operators/tls.md"


def block(title: str) -> str:
    (text,) = re.findall(rf'```\w+ title="{title}"\n(.*?)```', GUIDE.read_text(), re.DOTALL)
    return text


@pytest.fixture
def made(tmp_path: Path, need: Callable[[bool, str], None]) -> Path:
    need(shutil.which("openssl") is not None, "openssl on PATH: apt-get install openssl")
    commands = block("an authority, and a certificate for ferret.lab")
    done = subprocess.run(["bash", "-euc", commands], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.heavy
def test_the_authority_of_the_guide_makes_a_certificate_that_serves(made: Path) -> None:
    certificate = Certificate.load(made / "ferret.pem", made / "ferret.key")
    assert certificate.covers("ferret.lab")
    assert certificate.covers("10.0.0.5")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate.cert_file, certificate.key_file)
    for name, taken in (("ferret.lab", True), ("other.lab", False)):
        assert shakes_hands(serving, certificates.context(made / "authority.pem"), name) is taken
    assert not shakes_hands(serving, certificates.context(), "ferret.lab"), "nobody else knows the authority"


def test_the_guide_shows_the_caddyfile() -> None:
    assert block("Caddyfile") == (ROOT / "Caddyfile").read_text()


@pytest.mark.parametrize("title", ["a public name", "a laboratory"])
def test_the_guides_way_in_containers_sets_what_compose_reads(title: str) -> None:
    commands = block(title)
    (env,) = re.findall(r"cat > \.env <<END\n(.*?)END\n", commands, re.DOTALL)
    names = [line.partition("=")[0] for line in env.splitlines()]
    compose = (ROOT / "docker-compose.yml").read_text()
    assert all(f"${{{name}:-" in compose for name in names)
    service_path = re.findall(r"docker compose cp (\w+):(/\w+)/", commands)
    services = yaml.safe_load(compose)["services"]
    assert all(any(f":{folder}" in mount for mount in services[name]["volumes"]) for name, folder in service_path)


def shakes_hands(serving: ssl.SSLContext, knowing: ssl.SSLContext, name: str) -> bool:
    there, here = socket.socketpair()

    def answer() -> None:
        try:
            serving.wrap_socket(there, server_side=True).close()
        except OSError:
            there.close()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        with knowing.wrap_socket(here, server_hostname=name):
            return True
    except ssl.SSLCertVerificationError:
        return False
    finally:
        here.close()
        thread.join()
