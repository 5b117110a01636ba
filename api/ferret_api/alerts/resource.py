"""Alerts and their messages as the API shows them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from ferret_core.protocol.resources.alerts import Alert, AlertKind, Delivery, DeliveryState
from ferret_db import tables


def of(row: tables.Alert, deliveries: Sequence[tables.AlertDelivery] = ()) -> Alert:
    own = {"address": shown(row), "deliveries": [of_delivery(delivery) for delivery in deliveries]}
    return Alert(**own, **{name: getattr(row, name) for name in Alert.model_fields if name not in own})


def of_delivery(row: tables.AlertDelivery) -> Delivery:
    over = DeliveryState.DELIVERED if row.delivered_at else DeliveryState.FAILED
    columns = {name: getattr(row, name) for name in Delivery.model_fields if name != "state"}
    return Delivery(state=DeliveryState.WAITING if row.due_at else over, **columns)


def shown(alert: tables.Alert) -> str:
    """The address as others may read it."""
    if alert.kind == AlertKind.EMAIL:
        return alert.address
    parts = urlsplit(alert.address)
    return f"{parts.scheme}://{parts.netloc}" + ("/…" if parts.path.strip("/") or parts.query else "")
