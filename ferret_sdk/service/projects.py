"""Projects of a server, their members, the models and data that their experiments may use, and alerts on these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.alerts import Alert, AlertEvent, AlertKind, AlertList, CreatedAlert, Delivery
from ferret_core.protocol.resources.projects import Member, MemberList, Project
from ferret_core.protocol.resources.users import User
from ferret_sdk.http.transport import Transport, list_items, read_model


class Projects:
    """The value of ``Service.projects``. Members can read their projects; only administrators can change them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __iter__(self) -> Iterator[Project]:
        """Yields the caller's visible projects by name."""
        return list_items(self._transport, "/projects", Project, limit=200)

    def get(self, name: str) -> Project:
        """Returns the project. Raises ``project.not_found`` if the caller cannot see it."""
        return read_model(Project, self._transport.get(_path(name)))

    def create(self, name: str, description: str = "") -> Project:
        """Creates a project without members. Raises ``project.conflict`` if the name is taken."""
        return read_model(Project, self._transport.post("/projects", {"name": name, "description": description}).json())

    def change(self, name: str, **values: Any) -> Project:
        """Changes the ``description``, ``models`` or ``data``; None for the last two allows all."""
        return read_model(Project, self._transport.patch(_path(name), values).json())

    def delete(self, name: str) -> None:
        """Deletes the project. Raises ``project.conflict`` while it has experiments."""
        self._transport.request("DELETE", _path(name))

    def members(self, name: str) -> list[Member]:
        """Returns the members by name."""
        return read_model(MemberList, self._transport.get(f"{_path(name)}/members")).items

    def add_member(self, name: str, user: User) -> None:
        """Adds the user, who sees the project's experiments from the next request on."""
        self._transport.request("PUT", f"{_path(name)}/members/{user.id}", repeatable=True)

    def remove_member(self, name: str, user: User) -> None:
        """Removes the user, who sees nothing of the project from the next request on."""
        self._transport.request("DELETE", f"{_path(name)}/members/{user.id}")


def _path(name: str) -> str:
    return f"/projects/{quote(name, safe='')}"


class Alerts:
    """The value of ``Service.alerts``. Members of a project can read; its researchers and administrators can change."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def of(self, project: str) -> list[Alert]:
        """Returns the alerts with their last deliveries, oldest first."""
        return read_model(AlertList, self._transport.get(_alerts_path(project))).items

    def get(self, project: str, id: str) -> Alert:
        """Returns the alert, or raises ``alert.not_found`` if the project does not have it."""
        for alert in self.of(project):
            if alert.id == id:
                return alert
        reason = f"no such alert of {project}; see `ferret alert list`"
        raise FerretError.of_field("alert.not_found", "alert", id, reason)

    def create(
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
        return read_model(CreatedAlert, self._transport.post(_alerts_path(project), body).json())

    def test(self, project: str, id: str) -> Delivery:
        """Sends a test message. Its result is in :meth:`get`."""
        return read_model(Delivery, self._transport.post(f"{_alerts_path(project)}/{quote(id, safe='')}:test").json())

    def switch(self, project: str, id: str, *, enabled: bool) -> Alert:
        """Enables or disables the alert. Disabling drops queued messages."""
        path = f"{_alerts_path(project)}/{quote(id, safe='')}"
        return read_model(Alert, self._transport.patch(path, {"enabled": enabled}).json())

    def delete(self, project: str, id: str) -> None:
        """Deletes the alert and drops queued messages."""
        self._transport.request("DELETE", f"{_alerts_path(project)}/{quote(id, safe='')}")


def _alerts_path(project: str) -> str:
    return f"/projects/{quote(project, safe='')}/alerts"
