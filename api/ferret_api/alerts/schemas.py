"""Alerts as the API takes and shows them. Where a webhook leads is shown without its path, which is often a secret."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from ferret_api.schemas import Command, Resource
from ferret_core.protocol.alerts import AlertEvent, AlertKind
from ferret_core.protocol.ids import ExperimentId
from ferret_core.protocol.sanitize import Line
from ferret_db import tables

Events = Annotated[list[AlertEvent], Field(min_length=1, max_length=len(AlertEvent), description="Of what is told")]


class DeliveryState(StrEnum):
    """waiting → delivered | failed, after a day of attempts."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(Resource):
    """A message that was or is to be sent."""

    id: str = Field(description="The same at each attempt: `webhook-id`, and the begin of an e-mail's `Message-ID`")
    event: str = Field(description="One of the alert's events, or `test`")
    state: DeliveryState
    attempts: int
    status: int | None = Field(description="HTTP status of the last answer")
    error: str | None = Field(description="Why the last attempt did not succeed")
    created_at: datetime
    tried_at: datetime | None
    due_at: datetime | None = Field(description="When it is tried next; null once it is delivered or given up")

    @classmethod
    def of(cls, row: tables.AlertDelivery) -> Delivery:
        over = DeliveryState.DELIVERED if row.delivered_at else DeliveryState.FAILED
        columns = {name: getattr(row, name) for name in cls.model_fields if name != "state"}
        return cls(state=DeliveryState.WAITING if row.due_at else over, **columns)


class Alert(Resource):
    """Who is told when something happens to the project's experiments, or to one of them."""

    id: str
    project: str
    kind: AlertKind
    address: str = Field(description="An e-mail address, or scheme and host of a webhook")
    events: Events
    experiment_id: str | None = Field(description="The only experiment that it is about; null: all of the project")
    enabled: bool = Field(description="false: nobody is told, until it is switched on again")
    created_at: datetime
    deliveries: list[Delivery] = Field(description="The last few, the newest first")

    @classmethod
    def of(cls, row: tables.Alert, deliveries: Sequence[tables.AlertDelivery] = ()) -> Alert:
        own = {"address": shown(row), "deliveries": [Delivery.of(delivery) for delivery in deliveries]}
        return cls(**own, **{name: getattr(row, name) for name in Alert.model_fields if name not in own})


class CreatedAlert(Alert):
    """A new alert, with what is told this once."""

    secret: str | None = Field(description="Key of a webhook's signatures, `whsec_…`; shown only now")


class AlertList(Resource):
    """All alerts of a project, the oldest first."""

    items: list[Alert]


class NewAlert(
    Command,
    json_schema_extra={
        "examples": [
            {"kind": "webhook", "address": "https://hooks.example.org/ferret", "events": ["failed", "stalled"]}
        ]
    },
):
    """Somebody is to be told."""

    kind: AlertKind
    address: Annotated[
        Line, Field(min_length=1, max_length=2000, description="Where the webhook leads, or an e-mail address")
    ]
    events: Events = Field(default_factory=lambda: list(AlertEvent))
    experiment_id: ExperimentId | None = Field(
        default=None, description="The only experiment that it is about; null: all of the project"
    )


class AlertChange(Command, json_schema_extra={"examples": [{"enabled": False}]}):
    """The alert is to be switched on or off."""

    enabled: bool


def shown(alert: tables.Alert) -> str:
    """The address as others may read it."""
    if alert.kind == AlertKind.EMAIL:
        return alert.address
    parts = urlsplit(alert.address)
    return f"{parts.scheme}://{parts.netloc}" + ("/…" if parts.path.strip("/") or parts.query else "")
