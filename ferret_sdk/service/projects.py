"""Projects of a server, their members, and the models and data that their experiments may use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from ferret_core.protocol.resources.projects import Member, MemberList, Project
from ferret_core.protocol.resources.users import User
from ferret_sdk.http.answers import read
from ferret_sdk.http.transport import Transport
from ferret_sdk.service.pagination import items


class Projects:
    """The value of ``Service.projects``. Members can read their projects; only administrators can change them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __iter__(self) -> Iterator[Project]:
        """Yields the caller's visible projects by name."""
        return items(self._transport, "/projects", Project, limit=200)

    def get(self, name: str) -> Project:
        """Returns the project. Raises ``project.not_found`` if the caller cannot see it."""
        return read(Project, self._transport.get(_path(name)))

    def add(self, name: str, description: str = "") -> Project:
        """Creates a project without members. Raises ``project.conflict`` if the name is taken."""
        return read(Project, self._transport.post("/projects", {"name": name, "description": description}).json())

    def change(self, name: str, **values: Any) -> Project:
        """Changes the ``description``, ``models`` or ``data``; None for the last two allows all."""
        headers, content = {"Content-Type": "application/json"}, json.dumps(values).encode()
        answer = self._transport.request("PATCH", _path(name), content=content, headers=headers, repeatable=True)
        return read(Project, answer.json())

    def delete(self, name: str) -> None:
        """Deletes the project. Raises ``project.conflict`` while it has experiments."""
        self._transport.request("DELETE", _path(name))

    def members(self, name: str) -> list[Member]:
        """Returns the members by name."""
        return read(MemberList, self._transport.get(f"{_path(name)}/members")).items

    def add_member(self, name: str, user: User) -> None:
        """Adds the user, who sees the project's experiments from the next request on."""
        self._transport.request("PUT", f"{_path(name)}/members/{user.id}", repeatable=True)

    def remove_member(self, name: str, user: User) -> None:
        """Removes the user, who sees nothing of the project from the next request on."""
        self._transport.request("DELETE", f"{_path(name)}/members/{user.id}")


def _path(name: str) -> str:
    return f"/projects/{quote(name, safe='')}"
