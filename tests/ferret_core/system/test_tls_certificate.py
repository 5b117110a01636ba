"""A certificate and its key as somebody gives them: right, or wrong in the ways that happen."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from ferret_core.protocol.errors import FerretError
from ferret_core.system.tls_certificate import Certificate
from tests.refusals import refused

Issue = Callable[..., tuple[Path, Path]]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def issue(authority: trustme.CA, tmp_path: Path) -> Issue:
    """Writes a certificate for the names, and its key."""

    def write(*names: str, folder: str = "tls", **options: Any) -> tuple[Path, Path]:
        issued = authority.issue_cert(*names or ("ferret.lab",), **options)
        (tmp_path / folder).mkdir(exist_ok=True)
        cert, key = tmp_path / folder / "cert.pem", tmp_path / folder / "key.pem"
        cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        key.write_bytes(issued.private_key_pem.bytes())
        key.chmod(0o600)
        return cert, key

    return write


def refusal(cert: Path | None, key: Path | None) -> FerretError:
    with refused("settings.invalid") as caught:
        Certificate.given(cert, key)
    return caught.value


def test_a_good_pair_is_known_by_its_names_and_its_end(issue: Issue) -> None:
    certificate = Certificate.load(*issue("Ferret.lab", "*.wards.ferret.lab", "10.0.0.5", "::1"))
    assert certificate.described == "ferret.lab, *.wards.ferret.lab, 10.0.0.5, ::1"
    assert certificate.host == "ferret.lab"
    assert certificate.ends > datetime.now(UTC)


COVERED = ["ferret.lab", "FERRET.lab", "ferret.lab.", "a.wards.ferret.lab", "10.0.0.5", "::1"]
OTHERS = ["lab", "a.ferret.lab", "b.a.wards.ferret.lab", "wards.ferret.lab", "10.0.0.6", ""]


@pytest.mark.parametrize("host", COVERED + OTHERS)
def test_it_covers_its_names_and_addresses_and_nothing_else(issue: Issue, host: str) -> None:
    certificate = Certificate.load(*issue("ferret.lab", "*.wards.ferret.lab", "10.0.0.5", "::1"))
    assert certificate.covers(host) is (host in COVERED)


def test_a_name_that_does_not_match_is_told_with_those_that_would(issue: Issue) -> None:
    certificate = Certificate.load(*issue("ferret.lab", "10.0.0.5"))
    certificate.require(["other.lab", "10.0.0.5"])
    with refused("settings.invalid", "ferret.lab", "10.0.0.5", "10.0.0.6", "--host"):
        certificate.require(["10.0.0.6"])


def test_one_without_the_other_is_refused(issue: Issue) -> None:
    cert, key = issue()
    assert Certificate.given(None, None) is None
    assert "FERRET_TLS_KEY" in refusal(cert, None).detail
    assert "FERRET_TLS_CERT" in refusal(None, key).detail


def test_a_key_of_another_certificate(issue: Issue) -> None:
    cert, _ = issue()
    _, key = issue(folder="other")
    assert f"{key}: does not belong to the certificate in {cert}" in refusal(cert, key).detail.replace("'", "")


def test_an_expired_certificate_and_one_that_is_not_valid_yet(issue: Issue) -> None:
    now = datetime.now(UTC)
    expired = issue(not_before=now - timedelta(days=9), not_after=now - timedelta(days=2))
    assert f"expired on {now - timedelta(days=2):%Y-%m-%d}" in refusal(*expired).detail
    early = issue(not_before=now + timedelta(days=1), not_after=now + timedelta(days=9))
    assert "set this machine's clock" in refusal(*early).detail


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602])
def test_a_key_that_others_can_read(issue: Issue, mode: int) -> None:
    cert, key = issue()
    key.chmod(mode)
    assert f"mode {mode:04o}): chmod 600 {key}" in refusal(cert, key).detail


def test_a_group_may_read_a_key_of_root_alone(issue: Issue, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = issue()
    key.chmod(0o640)
    found = key.stat()
    for owner, allowed in ((0, True), (1000, False)):
        said = os.stat_result((*found[:4], owner, *found[5:]))
        monkeypatch.setattr(Path, "stat", lambda path, said=said, **_: said)
        if allowed:
            assert Certificate.load(cert, key).names == ("ferret.lab",)
        else:
            assert "0640" in refusal(cert, key).detail


def test_files_that_are_missing_or_something_else(issue: Issue, tmp_path: Path) -> None:
    cert, key = issue()
    assert "No such file" in refusal(tmp_path / "none.pem", key).detail
    assert "No such file" in refusal(cert, tmp_path / "none.pem").detail
    assert "not a certificate in PEM form" in refusal(key, key).detail
    assert "not a private key in PEM form" in refusal(cert, private(tmp_path / "cert.key", cert.read_bytes())).detail


def test_an_encrypted_key_is_told_as_one(issue: Issue, tmp_path: Path) -> None:
    cert, key = issue()
    loaded = load_pem_private_key(key.read_bytes(), None)
    hidden = loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    assert "is encrypted" in refusal(cert, private(tmp_path / "hidden.pem", hidden)).detail


def test_a_certificate_without_a_name_in_it(authority: trustme.CA, tmp_path: Path) -> None:
    cert, key = tmp_path / "ca.pem", private(tmp_path / "ca.key", authority.private_key_pem.bytes())
    authority.cert_pem.write_to_path(cert)
    assert "names no host" in refusal(cert, key).detail


def test_what_is_accepted_serves(issue: Issue) -> None:
    certificate = Certificate.load(*issue())
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate.cert_file, certificate.key_file)


def private(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path
