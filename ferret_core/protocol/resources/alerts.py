"""Alerts: the events that trigger them, the channels that deliver them, and their messages. The path of a webhook's
address is not shown, because it is often a secret."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from ferret_core.protocol.ids import AlertId, ExperimentId, TokenText
from ferret_core.protocol.resources.base import Resource
from ferret_core.protocol.sanitize import Line, Words

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


AlertEvents = Annotated[
    list[AlertEvent], Field(min_length=1, max_length=len(AlertEvent), description="Events that trigger the alert")
]


class DeliveryState(StrEnum):
    """State of a message: waiting → delivered | failed, after a day of attempts."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(Resource):
    """A sent or queued message."""

    id: Line = Field(
        description=(
            "Identifier that is the same at each attempt: `webhook-id`, and the start of an e-mail's `Message-ID`"
        )
    )
    event: Line = Field(description="One of the alert's events, or `test`")
    state: DeliveryState
    attempts: int
    status: int | None = Field(description="HTTP status of the last response")
    error: Words | None = Field(description="Why the last attempt failed")
    created_at: datetime
    tried_at: datetime | None
    due_at: datetime | None = Field(description="Time of the next attempt; null once it is delivered or has failed")


class Alert(Resource):
    """An alert: reports events of a project's experiments, or of one experiment, to an address."""

    id: AlertId
    project: Line
    kind: AlertKind
    address: Line = Field(description="An e-mail address, or the scheme and host of a webhook")
    events: AlertEvents
    experiment_id: ExperimentId | None = Field(
        description="The only experiment it covers; null: all experiments of the project"
    )
    enabled: bool = Field(description="false: no messages are sent")
    created_at: datetime
    deliveries: list[Delivery] = Field(description="The latest messages, newest first")


class CreatedAlert(Alert):
    """A created alert with its signing key."""

    secret: TokenText | None = Field(description="Signing key of the webhook, `whsec_…`; shown only once")


class AlertList(Resource):
    """All alerts of a project, oldest first."""

    items: list[Alert]
