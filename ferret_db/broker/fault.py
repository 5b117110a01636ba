"""Why a broker cannot be used, and what to do about it."""

from __future__ import annotations

from shlex import quote
from typing import NamedTuple

import amqp

from ferret_db.broker import address

SETTING = "FERRET_BROKER_URL"


class Fault(NamedTuple):
    """What is wrong, without a password, and the next step."""

    reason: str
    step: str

    def __str__(self) -> str:
        return f"{self.reason}; {self.step}"


def fault(url: str, error: BaseException) -> Fault:
    """What ``error`` says about the broker at ``url``."""
    if not address.is_amqp(url):
        return Fault(f"the broker does not answer ({error})", "start Redis")
    where = f"{':'.join(map(str, address.place(url)))} ({SETTING})"
    cause = _root(error)
    if isinstance(cause, amqp.AMQPError):
        return _refusal(url, f"RabbitMQ at {where}", cause)
    if isinstance(cause, ConnectionRefusedError):
        return Fault(f"{where} refuses the connection", "start RabbitMQ, or correct host and port")
    reason = getattr(cause, "strerror", None) or cause or "no answer in time"
    return Fault(f"RabbitMQ at {where} does not answer: {reason}", "look at its log, and start it again if it hangs")


def _refusal(url: str, where: str, error: amqp.AMQPError) -> Fault:
    user, vhost = address.user(url), address.vhost(url)
    allow = f"rabbitmqctl set_permissions -p {quote(vhost)} {quote(user)} '.*' '.*' '.*'"
    match error:
        case amqp.NotAllowed() if "not found" in str(error):
            return Fault(f"{where} has no vhost {vhost!r}", f"rabbitmqctl add_vhost {quote(vhost)}")
        case amqp.NotAllowed():
            return Fault(f"{where} keeps user {user!r} out of vhost {vhost!r}", allow)
        case amqp.AccessRefused() if "Login was refused" in str(error):
            step = f"correct it, or: rabbitmqctl add_user {quote(user)}, then {allow}"
            return Fault(f"{where} does not know user {user!r} with this password", step)
        case amqp.AccessRefused():
            return Fault(f"{where} does not let user {user!r} use the queues in vhost {vhost!r}", allow)
        case amqp.PreconditionFailed():
            step = "give Ferret a vhost of its own, or delete that queue"
            return Fault(f"{where} has a queue of somebody else: {error}", step)
        case _:
            return Fault(f"{where} refuses: {error}", "look at its log")


def _root(error: BaseException) -> BaseException:
    """Kombu wraps what it met."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
