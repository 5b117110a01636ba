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
from ferret_sdk.http.transport import Transport, list_items, read_model


class Users:
    """The value of ``Service.people``: users, for administrators; own tokens and sessions if no ``user`` is named."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def me(self) -> CurrentUser:
        """Returns the caller's account."""
        return read_model(CurrentUser, self._transport.get("/me"))

    def change_password(self, current: str, password: str) -> None:
        """Changes the caller's password. Raises ``password.invalid`` if ``current`` is wrong."""
        headers = {"Content-Type": "application/json"}
        content = json.dumps({"current": current, "password": password}).encode()
        self._transport.request("PUT", "/me/password", content=content, headers=headers)

    def users(self) -> Iterator[User]:
        """Yields all users by name."""
        return list_items(self._transport, "/users", User, limit=200)

    def user(self, name: str) -> User:
        """Returns the user with this name or id. Raises ``user.not_found``."""
        for user in self.users():
            if name.lower() == user.name or name == user.id:
                return user
        raise FerretError.of_field("user.not_found", "user", name, "no such user; see `ferret user list`")

    def create(self, name: str, role: Role, password: str | None = None) -> User:
        """Creates a user. Raises ``user.conflict`` if the name is taken."""
        body = {"name": name, "role": role.value, "password": password}
        return read_model(User, self._transport.post("/users", body).json())

    def change(self, user: User, **values: Any) -> User:
        """Changes the user's ``role``, ``password`` or ``enabled``."""
        return read_model(User, self._transport.patch(f"/users/{user.id}", values).json())

    def tokens(self, user: User | None = None) -> list[Token]:
        """Returns the tokens by name."""
        return read_model(TokenList, self._transport.get(_tokens(user))).items

    def create_token(
        self, name: str, scopes: Sequence[Scope], seconds: int | None, user: User | None = None
    ) -> CreatedToken:
        """Creates a token. Its text is shown once. It does not expire if ``seconds`` is None.

        It ends with the user token that this service was opened with, if any; ``expires_at`` is the latest end.
        """
        body = {"name": name, "scopes": [scope.value for scope in scopes], "expires_seconds": seconds}
        return read_model(CreatedToken, self._transport.post(_tokens(user), body).json())

    def revoke_token(self, name: str, user: User | None = None) -> Token:
        """Revokes the token with this name or id, with all tokens and sessions made with it, and returns it.

        Raises ``token.not_found``.
        """
        for token in self.tokens(user):
            if name in {token.name, token.id}:
                self._transport.request("DELETE", f"{_tokens(user)}/{token.id}")
                return token
        raise FerretError.of_field("token.not_found", "token", name, "no such token; see `ferret token list`")

    def sessions(self, user: User | None = None) -> list[BrowserSession]:
        """Returns signed-in browsers and unused sign-in links, newest first."""
        return read_model(BrowserSessionList, self._transport.get(_sessions(user))).items

    def revoke_session(self, id: str, user: User | None = None) -> None:
        """Signs the browser with this session out, or revokes the sign-in link. Raises ``session.not_found``."""
        self._transport.request("DELETE", f"{_sessions(user)}/{quote(id, safe='')}")


def _tokens(user: User | None) -> str:
    return "/tokens" if user is None else f"/users/{user.id}/tokens"


def _sessions(user: User | None) -> str:
    return "/sessions" if user is None else f"/users/{user.id}/sessions"
