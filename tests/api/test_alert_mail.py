"""Alerts by e-mail, through a real mail server: in the clear, after STARTTLS, with and without a password."""

from __future__ import annotations

import email
import socket
import ssl
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, cast

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.api.conftest import Site, open_site
from tests.api.receiver import eventually

URL = "/api/v1/projects/default/alerts"


class Mailbox:
    """What a mail server keeps; ``refusals`` are its first answers."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.encrypted: list[bool] = []
        self.refusals: list[str] = []

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.refusals:
            return self.refusals.pop(0)
        self.envelopes.append(envelope)
        self.encrypted.append(session.ssl is not None)
        return "250 OK"

    @property
    def mails(self) -> list[EmailMessage]:
        return [
            cast(EmailMessage, email.message_from_bytes(bytes(each.content), policy=default)) for each in self.envelopes
        ]


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's, from an authority that this process trusts."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def start(mailbox: Mailbox, make_settings: Callable[..., Any]) -> Iterator[Callable[..., Site]]:
    """A mail server with these options and a service that sends by it."""
    open_now: list[Any] = []

    def begin(security: str, options: dict[str, Any], **settings: Any) -> Site:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        server = Controller(mailbox, hostname="127.0.0.1", port=port, **options)
        server.start()
        open_now.append(server.stop)
        opened = open_site(
            make_settings(
                smtp_host="127.0.0.1",
                smtp_port=port,
                smtp_security=security,
                smtp_from="ferret@clinic.example",
                alert_seconds=0.05,
                **settings,
            )
        )
        open_now.append(lambda: opened.__exit__(None, None, None))
        return opened.__enter__()

    yield begin
    for end in reversed(open_now):
        end()


def tell(site: Site, name: str = "hearts") -> str:
    """Ada is told of the end of an experiment."""
    body = {"kind": "email", "address": "ada@example.org"}
    added = site.admin.post(URL, json=body)
    assert added.status_code == 201, added.text
    assert added.json()["secret"] is None
    experiment_id = site.submit(name=name)
    site.move(experiment_id, "cancel")
    return experiment_id


def test_a_mail_says_what_happened_and_where_to_look(start: Any, mailbox: Mailbox) -> None:
    site = start("none", {}, public_url="https://ferret.example.org")
    experiment_id = tell(site, name="Herz-Studie Zürich 心")
    (mail,) = eventually(lambda: mailbox.mails)
    assert (mail["From"], mail["To"]) == ("ferret@clinic.example", "ada@example.org")
    assert mail["Subject"] == "Ferret: Herz-Studie Zürich 心 cancelled"
    text = mail.get_content()
    assert f"https://ferret.example.org/experiments/{experiment_id}" in text
    assert "Round 0 of 3, cancelled" in text
    (alert,) = eventually(lambda: [a for a in site.admin.get(URL).json()["items"] if a["deliveries"][0]["tried_at"]])
    assert mail["Message-ID"] == f"<{alert['deliveries'][0]['id']}@clinic.example>"
    assert alert["address"] == "ada@example.org"


def test_after_starttls_the_password_is_shown_and_the_mail_is_encrypted(
    start: Any, mailbox: Mailbox, certificates: ssl.SSLContext
) -> None:
    shown: list[LoginPassword] = []

    def authenticate(server: SMTP, session: Session, envelope: Envelope, mechanism: str, auth: Any) -> AuthResult:
        shown.append(auth)
        return AuthResult(success=auth.password == b"hush")

    options = {"tls_context": certificates, "authenticator": authenticate, "auth_required": True}
    tell(start("starttls", options, smtp_user="ferret", smtp_password="hush"))
    eventually(lambda: mailbox.mails)
    assert mailbox.encrypted == [True]
    assert [(each.login, each.password) for each in shown] == [(b"ferret", b"hush")]


def test_a_server_without_encryption_gets_nothing_where_it_was_asked_for(start: Any, mailbox: Mailbox) -> None:
    site = start("starttls", {})
    tell(site)
    (alert,) = eventually(lambda: [a for a in site.admin.get(URL).json()["items"] if a["deliveries"][0]["error"]])
    assert "STARTTLS" in alert["deliveries"][0]["error"]
    assert mailbox.envelopes == []


def test_a_refused_mail_is_tried_again(start: Any, mailbox: Mailbox) -> None:
    mailbox.refusals.append("451 come back later")
    site = start("none", {})
    tell(site)
    (alert,) = eventually(lambda: [a for a in site.admin.get(URL).json()["items"] if a["deliveries"][0]["error"]])
    assert "come back later" in alert["deliveries"][0]["error"]
    assert alert["deliveries"][0]["state"] == "waiting"
    eventually(lambda: mailbox.mails)


@pytest.mark.parametrize("address", ["ada", "ada@", "a@b, c@d", "ada@example.org>", "Ada <ada@example.org>"])
def test_what_is_no_address_is_refused(start: Any, address: str) -> None:
    site = start("none", {})
    answer = site.admin.post(URL, json={"kind": "email", "address": address})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "address")
