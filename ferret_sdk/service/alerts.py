"""Who is told what happens to a project's experiments."""

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
    """What ``Service.alerts`` gives. Members of a project look; its researchers and administrators change."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def of(self, project: str) -> list[Alert]:
        """The oldest first, each with its last deliveries."""
        return read(AlertList, self._transport.get(_path(project))).items

    def get(self, project: str, id: str) -> Alert:
        """``alert.not_found`` for one that the project has not."""
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
        """A new alert, of all experiments of the project or of one alone; with a webhook's the key of its signatures,
        which is shown this once."""
        body = {"kind": kind.value, "address": address, "events": [event.value for event in events]}
        body |= {} if experiment_id is None else {"experiment_id": experiment_id}
        return read(CreatedAlert, self._transport.post(_path(project), body).json())

    def test(self, project: str, id: str) -> Delivery:
        """Sends a message that says nothing but that it came; :meth:`get` tells what became of it."""
        return read(Delivery, self._transport.post(f"{_path(project)}/{quote(id, safe='')}:test").json())

    def switch(self, project: str, id: str, *, enabled: bool) -> Alert:
        """Switched off, it is told nothing, and what was still to be sent is given up."""
        headers, content = {"Content-Type": "application/json"}, json.dumps({"enabled": enabled}).encode()
        path = f"{_path(project)}/{quote(id, safe='')}"
        answer = self._transport.request("PATCH", path, content=content, headers=headers, repeatable=True)
        return read(Alert, answer.json())

    def remove(self, project: str, id: str) -> None:
        """Nobody is told any more, also not of what is still to be sent."""
        self._transport.request("DELETE", f"{_path(project)}/{quote(id, safe='')}")


def _path(project: str) -> str:
    return f"/projects/{quote(project, safe='')}/alerts"
