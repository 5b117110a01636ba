"""Endpoints for tokens: the caller's own, and for administrators also other users'."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from ferret_api.access import Admin, AdminOnly, Caller, Viewer
from ferret_api.context import Context, ContextDep
from ferret_api.http.errors import problems
from ferret_api.routers.users import UserId
from ferret_api.schemas import PREFIX, Command
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.users import CreatedToken, Token, TokenList
from ferret_core.protocol.roles import Scope
from ferret_core.protocol.sanitize import Line
from ferret_db.repositories import audit, user_tokens, users

router = APIRouter(prefix=PREFIX, tags=["users"])

TokenId = Annotated[str, Path(max_length=64, description="Id of the token, e.g. `tok_0123456789abcdef`")]


YEAR = 366 * 24 * 3600


class NewToken(
    Command,
    json_schema_extra={"examples": [{"name": "notebook", "scopes": ["read", "write"], "expires_seconds": 2592000}]},
):
    """Request to create a token."""

    name: Annotated[Line, Field(min_length=1, max_length=100, description="Label for the place of use; unique")]
    scopes: list[Scope] = Field(
        default=[Scope.READ],
        min_length=1,
        max_length=2,
        description="`read`: read access, `write`: changes, `metrics`: only `GET /metrics`",
    )
    expires_seconds: int | None = Field(
        default=90 * 24 * 3600,
        ge=1,
        le=10 * YEAR,
        description="Seconds until it expires; null: never. It expires no later than the token that creates it",
    )


@router.get("/tokens", operation_id="list_tokens")
def list_tokens(caller: Viewer, context: ContextDep) -> TokenList:
    """Lists the caller's tokens. Requires the role viewer."""
    return _list(context, caller.id)


@router.post("/tokens", operation_id="create_token", status_code=201, responses=problems("token.conflict"))
def create_token(wanted: NewToken, caller: Viewer, context: ContextDep) -> CreatedToken:
    """Creates a token for the caller. The response holds the token, which is shown only this once.

    Its scopes cannot exceed the scopes of the request's credential; otherwise `auth.forbidden`. A token created with
    another token expires no later than that token, and is revoked with it. Requires the role viewer."""
    return _create(context, caller, caller.id, wanted)


@router.delete(
    "/tokens/{token_id}", operation_id="revoke_token", status_code=204, responses=problems("token.not_found")
)
def revoke_token(token_id: TokenId, caller: Viewer, context: ContextDep) -> None:
    """Revokes one of the caller's tokens, with the tokens, sign-in links and sessions created with it.

    Requires the role viewer."""
    _revoke(context, caller, caller.id, token_id)


@router.get(
    "/users/{user_id}/tokens",
    operation_id="list_user_tokens",
    dependencies=[AdminOnly],
    responses=problems("user.not_found"),
)
def list_user_tokens(user_id: UserId, context: ContextDep) -> TokenList:
    """Lists a user's tokens. Requires the role admin."""
    return _list(context, user_id)


@router.post(
    "/users/{user_id}/tokens",
    operation_id="create_user_token",
    status_code=201,
    responses=problems("user.not_found", "token.conflict"),
)
def create_user_token(user_id: UserId, wanted: NewToken, caller: Admin, context: ContextDep) -> CreatedToken:
    """Creates a token for a user, such as a first token or that of a program. Requires the role admin.

    Its scopes cannot exceed the scopes of the request's credential; otherwise `auth.forbidden`. The response holds the
    token, which is shown only this once. If the request uses a token, the new one expires no later than it, and is
    revoked with it."""
    return _create(context, caller, user_id, wanted)


@router.delete(
    "/users/{user_id}/tokens/{token_id}",
    operation_id="revoke_user_token",
    status_code=204,
    responses=problems("user.not_found", "token.not_found"),
)
def revoke_user_token(user_id: UserId, token_id: TokenId, caller: Admin, context: ContextDep) -> None:
    """Revokes a user's token, with the tokens, sign-in links and sessions created with it. Requires the role admin."""
    _revoke(context, caller, user_id, token_id)


def _list(context: Context, user_id: str) -> TokenList:
    with context.database.read() as s:
        users.get(s, user_id)
        return TokenList(items=[Token.model_validate(row) for row in user_tokens.of_user(s, user_id)])


def _create(context: Context, caller: Caller, user_id: str, wanted: NewToken) -> CreatedToken:
    if missing := {scope for scope in wanted.scopes if not scope.within(caller.scopes)}:
        detail = (
            f"the token of this request lacks the scope {', '.join(sorted(missing))}, so it cannot give it to another"
        )
        raise FerretError("auth.forbidden", detail)
    with context.database.begin() as s:
        users.get(s, user_id)
        row, text = user_tokens.create(
            s, user_id, wanted.name, wanted.scopes, wanted.expires_seconds, parent=caller.token
        )
        details = {"name": row.name, "user": user_id, "scopes": " ".join(row.scopes)}
        audit.record(s, caller.id, "token.created", row.id, **details)
        return CreatedToken(**Token.model_validate(row).model_dump(), token=text)


def _revoke(context: Context, caller: Caller, user_id: str, token_id: str) -> None:
    with context.database.begin() as s:
        users.get(s, user_id)
        ended = user_tokens.revoke(s, user_id, token_id)
        details = {"name": ended.names[0], "user": user_id, "tokens": ended.tokens, "sessions": ended.sessions}
        audit.record(s, caller.id, "token.revoked", token_id, **details)
