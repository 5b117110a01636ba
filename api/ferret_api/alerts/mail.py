"""Alert messages as plain-text e-mails."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any

from ferret_api.settings import ApiSettings

SECONDS = 10.0
"""Timeout of each exchange with the mail server."""


def send(settings: ApiSettings, to: str, id: str, message: dict[str, Any]) -> None:
    """Sends the message through the configured mail server; raises ``OSError`` and ``smtplib``'s errors.

    The same ``id`` gives the same ``Message-ID``, which identifies repeated copies of a message.
    """
    mail = _mail(settings.smtp_from, to, id, message)
    with _connection(settings) as server:
        if settings.smtp_security == "starttls":
            server.starttls(context=ssl.create_default_context())
        if settings.smtp_user is not None:
            server.login(settings.smtp_user, settings.smtp_password or "")
        server.send_message(mail)


def _connection(settings: ApiSettings) -> smtplib.SMTP:
    host, port = settings.smtp_host or "", settings.smtp_port
    if settings.smtp_security == "tls":
        return smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=ssl.create_default_context())
    return smtplib.SMTP(host, port, timeout=SECONDS)


def _mail(sender: str, to: str, id: str, message: dict[str, Any]) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Date"] = sender, to, formatdate()
    mail["Message-ID"] = f"<{id}@{sender.partition('@')[2]}>"
    mail["Subject"] = _subject(message)
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(_text(message))
    return mail


def _subject(message: dict[str, Any]) -> str:
    data, (_, _, event) = message["data"], message["type"].rpartition(".")
    return f"Ferret: {data['name']} {event}" if "name" in data else f"Ferret: {event} of an alert"


def _text(message: dict[str, Any]) -> str:
    data = message["data"]
    lines = [data["detail"]] if data.get("detail") else []
    if "id" in data:
        lines.append(f"{data['name']} ({data['id']}), project {data['project']}")
        lines.append(f"Round {data['round']} of {data['rounds']}, {data['state']}")
    lines += [data["url"]] if "url" in data else []
    return "\n\n".join(lines) + "\n"
