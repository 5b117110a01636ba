"""Alerts: what a project's people may be told of, and how."""

from __future__ import annotations

from enum import StrEnum

ALERT_VERSION = 1
"""Of the message that a webhook gets."""
MAIL_ADDRESS = r"^[^@\s<>,;:\"()\[\]\\]+@[A-Za-z0-9.-]+$"


class AlertKind(StrEnum):
    """How somebody is told."""

    WEBHOOK = "webhook"
    EMAIL = "email"


class AlertEvent(StrEnum):
    """Of what somebody is told; ``stopped`` is a completion before the last round."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STALLED = "stalled"
