"""Alerts of a project: the events that trigger them and the channels that deliver them."""

from __future__ import annotations

from enum import StrEnum

ALERT_VERSION = 1
"""Version of the webhook's message."""
MAIL_ADDRESS = r"^[^@\s<>,;:\"()\[\]\\]+@[A-Za-z0-9.-]+$"


class AlertKind(StrEnum):
    """Channel of an alert."""

    WEBHOOK = "webhook"
    EMAIL = "email"


class AlertEvent(StrEnum):
    """Events that trigger an alert; ``stopped`` is a completion before the last round."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STALLED = "stalled"
