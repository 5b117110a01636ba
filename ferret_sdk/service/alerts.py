"""Alerts on a project's experiments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote

from ferret_core.protocol.alerts import AlertEvent, AlertKind
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.alerts import Alert, AlertList, CreatedAlert, Delivery
from ferret_sdk.http.answers import read
from ferret_sdk.http.transport import Transport


class Alerts:
    """The value of ``Service.alerts``. Members of a project can read; its researchers and administrators can change."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def of(self, project: str) -> list[Alert]:
        """Returns the alerts with their last deliveries, oldest first."""
        return read(AlertList, self._transport.get(_path(project))).items

    def get(self, project: str, id: str) -> Alert:
        """Returns the alert, or raises ``alert.not_found`` if the project does not have it."""
        for alert in self.of(project):
            if alert.id == id:
                return alert
        reason = f"no such alert of {project}; see `ferret alert list`"
        raise FerretError.of_field("alert.not_found", "alert", id, reason)

    def add(
        self,
        project: str,
        kind: AlertKind,
        address: str,
        events: Sequence[AlertEvent] = tuple(AlertEvent),
        experiment_id: str | None = None,
    ) -> CreatedAlert:
        """Creates an alert, for all experiments of the project or for one.

        A webhook's alert includes its signing key, which is shown once.
        """
        body = {"kind": kind.value, "address": address, "events": [event.value for event in events]}
        body |= {} if experiment_id is None else {"experiment_id": experiment_id}
        return read(CreatedAlert, self._transport.post(_path(project), body).json())

    def test(self, project: str, id: str) -> Delivery:
        """Sends a test message. Its result is in :meth:`get`."""
        return read(Delivery, self._transport.post(f"{_path(project)}/{quote(id, safe='')}:test").json())

    def switch(self, project: str, id: str, *, enabled: bool) -> Alert:
        """Enables or disables the alert. Disabling drops queued messages."""
        headers, content = {"Content-Type": "application/json"}, json.dumps({"enabled": enabled}).encode()
        path = f"{_path(project)}/{quote(id, safe='')}"
        answer = self._transport.request("PATCH", path, content=content, headers=headers, repeatable=True)
        return read(Alert, answer.json())

    def remove(self, project: str, id: str) -> None:
        """Deletes the alert and drops queued messages."""
        self._transport.request("DELETE", f"{_path(project)}/{quote(id, safe='')}")


def _path(project: str) -> str:
    return f"/projects/{quote(project, safe='')}/alerts"
