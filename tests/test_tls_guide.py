"""The commands of docs/tls.md make a certificate that the service takes, and clients that know the authority too."""

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

from ferret_core.certificate import Certificate
from ferret_sdk import certificates

GUIDE = Path(__file__).parents[1] / "docs/tls.md"


@pytest.fixture
def made(tmp_path: Path, need: Callable[[bool, str], None]) -> Path:
    need(shutil.which("openssl") is not None, "openssl on PATH: apt-get install openssl")
    (commands,) = re.findall(r"```bash title=[^\n]*\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    done = subprocess.run(["bash", "-euc", commands], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_the_authority_of_the_guide_makes_a_certificate_that_serves(made: Path) -> None:
    certificate = Certificate.load(made / "ferret.pem", made / "ferret.key")
    assert certificate.covers("ferret.lab")
    assert certificate.covers("10.0.0.5")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate.cert_file, certificate.key_file)
    for name, taken in (("ferret.lab", True), ("other.lab", False)):
        assert shakes_hands(serving, certificates.context(made / "authority.pem"), name) is taken
    assert not shakes_hands(serving, certificates.context(), "ferret.lab"), "nobody else knows the authority"


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
