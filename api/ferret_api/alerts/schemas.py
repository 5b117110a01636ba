"""Request bodies for alerts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ferret_api.schemas import Command
from ferret_core.protocol.ids import ExperimentId
from ferret_core.protocol.resources.alerts import AlertEvent, AlertEvents, AlertKind
from ferret_core.protocol.sanitize import Line


class NewAlert(
    Command,
    json_schema_extra={
        "examples": [
            {"kind": "webhook", "address": "https://hooks.example.org/ferret", "events": ["failed", "stalled"]}
        ]
    },
):
    """Request to create an alert."""

    kind: AlertKind
    address: Annotated[
        Line, Field(min_length=1, max_length=2000, description="Address of the webhook, or an e-mail address")
    ]
    events: AlertEvents = Field(default_factory=lambda: list(AlertEvent))
    experiment_id: ExperimentId | None = Field(
        default=None, description="The only experiment it covers; null: all experiments of the project"
    )


class AlertChange(Command, json_schema_extra={"examples": [{"enabled": False}]}):
    """Request to enable or disable an alert."""

    enabled: bool
