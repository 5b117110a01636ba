"""Users of a service under test."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from starlette.testclient import TestClient

from ferret_core.protocol.roles import Role, Scope
from ferret_db.repositories import user_tokens
from ferret_db.tables import FIRST_PROJECT, UserToken

PASSWORD = "correct horse battery staple"
READ_WRITE = (Scope.READ, Scope.WRITE)


class Person:
    """A user with a token."""

    def __init__(self, site: Any, user_id: str, name: str) -> None:
        self.site, self.id, self.name = site, user_id, name
        self.token_id = ""
        self.client = self.with_token(READ_WRITE)

    def with_token(self, scopes: Sequence[Scope]) -> TestClient:
        """Somebody with another token of the user."""
        with self.site.database.begin() as s:
            row, text = user_tokens.create(s, self.id, secrets.token_hex(4), scopes, 3600)
        self.token_id = row.id
        return self.site.client(text)

    def change(self, **values: Any) -> None:
        """As an administrator does."""
        self.site.admin.patch(f"/api/v1/users/{self.id}", json=values).raise_for_status()

    def expire(self) -> None:
        """The last token's time is over."""
        with self.site.database.begin() as s:
            s.get(UserToken, self.token_id).expires_at = self.site.database.now(s) - timedelta(seconds=1)

    def revoke(self) -> None:
        self.site.admin.delete(f"/api/v1/users/{self.id}/tokens/{self.token_id}").raise_for_status()

    def browser(self) -> TestClient:
        """A browser in which the user has signed in with name and password."""
        self.change(password=PASSWORD)
        return self.site.browser(name=self.name, password=PASSWORD)


def a_user(site: Any, role: Role, project: str | None = FIRST_PROJECT) -> Person:
    """A new user with a token of both scopes, a member of ``project``."""
    name = f"{role}-{secrets.token_hex(4)}"
    answer = site.admin.post("/api/v1/users", json={"name": name, "role": role.value})
    person = Person(site, answer.raise_for_status().json()["id"], name)
    if project is not None:
        site.admin.put(f"/api/v1/projects/{project}/members/{person.id}").raise_for_status()
    return person
