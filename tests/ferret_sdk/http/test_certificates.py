"""Certificates that are taken and those that are not, with servers that really show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import trustme

from ferret_sdk import Participant, Service
from ferret_sdk.http.transport import Transport
from tests.refusals import refused

HOUR = timedelta(hours=1)


def test_a_server_of_a_private_authority_is_trusted_by_its_file_also_on_this_machine(
    serve_tls, authority, ca, monkeypatch
):
    server = serve_tls(authority.issue_cert("127.0.0.1"))
    assert Transport(server.url, ca=ca).get("/info") == {}
    monkeypatch.setenv("SSL_CERT_FILE", str(ca))
    assert Transport(server.url).get("/info") == {}
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    monkeypatch.setenv("FERRET_CA", str(ca))
    assert Service(server.url, "token").transport.get("/info") == {}


def test_the_authority_that_is_named_is_the_only_one(serve_tls, authority, tmp_path):
    server = serve_tls(authority.issue_cert("127.0.0.1"))
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    with refused("certificate.invalid", "--ca FILE"):
        Transport(server.url, ca=other).get("/info")


def test_an_unknown_authority_is_refused_at_once_and_nothing_is_sent(serve_tls, authority):
    server = serve_tls(authority.issue_cert("127.0.0.1"))
    with refused("certificate.invalid"):
        Transport(server.url).get("/info")
    assert server.requests == []


@pytest.mark.parametrize(
    ("name", "begins", "ends", "said"),
    [
        ("other.example", -HOUR, HOUR, "for another name"),
        ("127.0.0.1", -2 * HOUR, -HOUR, "has expired: who runs the server has to renew it"),
        ("127.0.0.1", HOUR, 2 * HOUR, "not valid yet: check"),
    ],
)
def test_a_certificate_for_another_name_or_time(serve_tls, authority, ca, name, begins, ends, said):
    now = datetime.now(UTC)
    server = serve_tls(authority.issue_cert(name, not_before=now + begins, not_after=now + ends))
    with refused("certificate.invalid", said):
        Transport(server.url, ca=ca).get("/info")


def test_a_server_without_tls_is_said_to_be_one(server):
    with refused("server.unexpected", "does not speak TLS"):
        Transport(server.url.replace("http:", "https:")).get("/info")


@pytest.mark.parametrize("content", [None, "no certificate\n"])
def test_a_file_without_certificates_is_named(tmp_path, content):
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_text(content)
    with refused("request.invalid", "cannot be read as certificates") as raised:
        Participant.enrol("https://127.0.0.1:1", "code", "clinic", ca=path)
    assert str(path) in raised.value.detail
