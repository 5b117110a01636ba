"""Alerts, and the messages that they have sent. The address of a webhook is shown without its path, which is often a
secret."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from ferret_core.protocol.alerts import AlertEvent, AlertKind
from ferret_core.protocol.ids import AlertId, ExperimentId, TokenText
from ferret_core.protocol.resources.base import Resource
from ferret_core.protocol.sanitize import Line, Words

AlertEvents = Annotated[
    list[AlertEvent], Field(min_length=1, max_length=len(AlertEvent), description="Events that it reports")
]


class DeliveryState(StrEnum):
    """waiting → delivered | failed, after a day of attempts."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(Resource):
    """A message that was sent or will be sent."""

    id: Line = Field(description="The same at each attempt: `webhook-id`, and the start of an e-mail's `Message-ID`")
    event: Line = Field(description="One of the alert's events, or `test`")
    state: DeliveryState
    attempts: int
    status: int | None = Field(description="HTTP status of the last answer")
    error: Words | None = Field(description="Why the last attempt failed")
    created_at: datetime
    tried_at: datetime | None
    due_at: datetime | None = Field(description="Time of the next attempt; null once it is delivered or has failed")


class Alert(Resource):
    """Reports what happens to a project's experiments, or to one of them, to an address."""

    id: AlertId
    project: Line
    kind: AlertKind
    address: Line = Field(description="An e-mail address, or scheme and host of a webhook")
    events: AlertEvents
    experiment_id: ExperimentId | None = Field(
        description="The only experiment that it reports on; null: all of the project"
    )
    enabled: bool = Field(description="false: it sends nothing until it is enabled again")
    created_at: datetime
    deliveries: list[Delivery] = Field(description="The last few messages, newest first")


class CreatedAlert(Alert):
    """A new alert, with the key of its signatures."""

    secret: TokenText | None = Field(description="Key of a webhook's signatures, `whsec_…`; shown only this once")


class AlertList(Resource):
    """All alerts of a project, oldest first."""

    items: list[Alert]
