"""Tokens: everybody's own, and those that administrators make and revoke for others."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from ferret_api.access import Admin, AdminOnly, Caller, Viewer
from ferret_api.context import Context, ContextDep
from ferret_api.http.problems import problems
from ferret_api.schemas import PREFIX
from ferret_api.users.endpoints import UserId
from ferret_api.users.schemas import NewToken
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.users import CreatedToken, Token, TokenList
from ferret_db.repositories import audit, user_tokens, users

router = APIRouter(prefix=PREFIX, tags=["users"])

TokenId = Annotated[str, Path(max_length=64, description="Id of the token, e.g. `tok_0123456789abcdef`")]


@router.get("/tokens", operation_id="list_tokens")
def list_tokens(caller: Viewer, context: ContextDep) -> TokenList:
    """The caller's tokens."""
    return _list(context, caller.id)


@router.post("/tokens", operation_id="create_token", status_code=201, responses=problems("token.conflict"))
def create_token(wanted: NewToken, caller: Viewer, context: ContextDep) -> CreatedToken:
    """A token of one's own, with no scope that the credential of this request lacks. A token that is made with another
    one expires with it at the latest, and ends when it is revoked."""
    if missing := {scope for scope in wanted.scopes if not scope.within(caller.scopes)}:
        detail = f"this token has no scope {', '.join(sorted(missing))}, and makes none that has"
        raise FerretError("auth.forbidden", detail)
    return _create(context, caller, caller.id, wanted)


@router.delete(
    "/tokens/{token_id}", operation_id="revoke_token", status_code=204, responses=problems("token.not_found")
)
def revoke_token(token_id: TokenId, caller: Viewer, context: ContextDep) -> None:
    """Revokes a token of one's own: from here on it is good for nothing. Tokens, sign-in links and sessions that were
    made with it end too."""
    _revoke(context, caller, caller.id, token_id)


@router.get(
    "/users/{user_id}/tokens",
    operation_id="list_user_tokens",
    dependencies=[AdminOnly],
    responses=problems("user.not_found"),
)
def list_user_tokens(user_id: UserId, context: ContextDep) -> TokenList:
    """The tokens of a user."""
    return _list(context, user_id)


@router.post(
    "/users/{user_id}/tokens",
    operation_id="create_user_token",
    status_code=201,
    responses=problems("user.not_found", "token.conflict"),
)
def create_user_token(user_id: UserId, wanted: NewToken, caller: Admin, context: ContextDep) -> CreatedToken:
    """A token for a user, such as the first one, or that of a program. It expires with the token that makes it, if one
    does, and ends when that is revoked."""
    return _create(context, caller, user_id, wanted)


@router.delete(
    "/users/{user_id}/tokens/{token_id}",
    operation_id="revoke_user_token",
    status_code=204,
    responses=problems("user.not_found", "token.not_found"),
)
def revoke_user_token(user_id: UserId, token_id: TokenId, caller: Admin, context: ContextDep) -> None:
    """Revokes a user's token, with the tokens, sign-in links and sessions that were made with it."""
    _revoke(context, caller, user_id, token_id)


def _list(context: Context, user_id: str) -> TokenList:
    with context.database.read() as s:
        users.get(s, user_id)
        return TokenList(items=[Token.model_validate(row) for row in user_tokens.of_user(s, user_id)])


def _create(context: Context, caller: Caller, user_id: str, wanted: NewToken) -> CreatedToken:
    with context.database.begin() as s:
        users.get(s, user_id)
        row, text = user_tokens.create(
            s, user_id, wanted.name, wanted.scopes, wanted.expires_seconds, parent=caller.token
        )
        told = {"name": row.name, "user": user_id, "scopes": " ".join(row.scopes)}
        audit.record(s, caller.id, "token.created", row.id, **told)
        return CreatedToken(**Token.model_validate(row).model_dump(), token=text)


def _revoke(context: Context, caller: Caller, user_id: str, token_id: str) -> None:
    with context.database.begin() as s:
        users.get(s, user_id)
        ended = user_tokens.revoke(s, user_id, token_id)
        told = {"name": ended.names[0], "user": user_id, "tokens": ended.tokens, "sessions": ended.sessions}
        audit.record(s, caller.id, "token.revoked", token_id, **told)
