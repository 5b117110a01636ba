"""Users, tokens and sessions of a server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.users import (
    BrowserSession,
    BrowserSessionList,
    CreatedToken,
    CurrentUser,
    Token,
    TokenList,
    User,
)
from ferret_core.protocol.roles import Role, Scope
from ferret_sdk.http.answers import read
from ferret_sdk.http.transport import Transport
from ferret_sdk.service.pagination import items


class People:
    """The value of ``Service.people``. Users are for administrators. Tokens and sessions are the caller's own unless a
    ``user`` is named."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def me(self) -> CurrentUser:
        """Who is asking."""
        return read(CurrentUser, self._transport.get("/me"))

    def change_password(self, current: str, password: str) -> None:
        """Another password for oneself; ``password.invalid`` if ``current`` is not the one until now."""
        headers = {"Content-Type": "application/json"}
        content = json.dumps({"current": current, "password": password}).encode()
        self._transport.request("PUT", "/me/password", content=content, headers=headers)

    def users(self) -> Iterator[User]:
        """Everybody who has an account, by name."""
        return items(self._transport, "/users", User, limit=200)

    def user(self, name: str) -> User:
        """The user of this name or id; ``user.not_found``."""
        for user in self.users():
            if name.lower() == user.name or name == user.id:
                return user
        raise FerretError.of_field("user.not_found", "user", name, "no such user; see `ferret user list`")

    def add(self, name: str, role: Role, password: str | None = None) -> User:
        """A new user; ``user.conflict`` if the name is taken."""
        body = {"name": name, "role": role.value, "password": password}
        return read(User, self._transport.post("/users", body).json())

    def change(self, user: User, **values: Any) -> User:
        """The user with another ``role`` or ``password``, or ``enabled`` or not."""
        headers, content = {"Content-Type": "application/json"}, json.dumps(values).encode()
        answer = self._transport.request(
            "PATCH", f"/users/{user.id}", content=content, headers=headers, repeatable=True
        )
        return read(User, answer.json())

    def tokens(self, user: User | None = None) -> list[Token]:
        """By name."""
        return read(TokenList, self._transport.get(_tokens(user))).items

    def create_token(
        self, name: str, scopes: Sequence[Scope], seconds: int | None, user: User | None = None
    ) -> CreatedToken:
        """A token with its text, which is shown this once; None ``seconds``: it does not expire. It ends with the token
        that this service was opened with, if that is a user's: ``expires_at`` says when at the latest."""
        body = {"name": name, "scopes": [scope.value for scope in scopes], "expires_seconds": seconds}
        return read(CreatedToken, self._transport.post(_tokens(user), body).json())

    def revoke_token(self, name: str, user: User | None = None) -> Token:
        """Revokes the token of this name or id, with all tokens and sessions that were made with it, and gives what it
        was; ``token.not_found``."""
        for token in self.tokens(user):
            if name in {token.name, token.id}:
                self._transport.request("DELETE", f"{_tokens(user)}/{token.id}")
                return token
        raise FerretError.of_field("token.not_found", "token", name, "no such token; see `ferret token list`")

    def sessions(self, user: User | None = None) -> list[BrowserSession]:
        """Signed-in browsers and unused sign-in links, the newest first."""
        return read(BrowserSessionList, self._transport.get(_sessions(user))).items

    def end_session(self, id: str, user: User | None = None) -> None:
        """Ends the session of this id, or makes the sign-in link useless; ``session.not_found``."""
        self._transport.request("DELETE", f"{_sessions(user)}/{quote(id, safe='')}")


def _tokens(user: User | None) -> str:
    return "/tokens" if user is None else f"/users/{user.id}/tokens"


def _sessions(user: User | None) -> str:
    return "/sessions" if user is None else f"/users/{user.id}/sessions"
