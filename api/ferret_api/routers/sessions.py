"""Endpoints for browser sessions: the caller's own, and for administrators also other users'."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request

from ferret_api.access import Admin, AdminOnly, Caller, Viewer
from ferret_api.auth import cookies
from ferret_api.context import Context, ContextDep
from ferret_api.http.errors import problems
from ferret_api.routers.users import UserId
from ferret_api.schemas import PREFIX
from ferret_core.protocol.resources.users import BrowserSession, BrowserSessionList
from ferret_db.repositories import audit, sessions, users

router = APIRouter(prefix=PREFIX, tags=["users"])

SessionId = Annotated[str, Path(max_length=64, description="Id of the session, e.g. `ses_0123456789abcdef`")]


@router.get("/sessions", operation_id="list_sessions")
def list_sessions(caller: Viewer, request: Request, context: ContextDep) -> BrowserSessionList:
    """Lists the caller's browser sessions and unused sign-in links. Requires the role viewer."""
    return _list(context, request, caller.id)


@router.delete(
    "/sessions/{session_id}", operation_id="end_session", status_code=204, responses=problems("session.not_found")
)
def end_session(session_id: SessionId, caller: Viewer, context: ContextDep) -> None:
    """Ends one of the caller's sessions or sign-in links. Requires the role viewer."""
    _end(context, caller, caller.id, session_id)


@router.get(
    "/users/{user_id}/sessions",
    operation_id="list_user_sessions",
    dependencies=[AdminOnly],
    responses=problems("user.not_found"),
)
def list_user_sessions(user_id: UserId, request: Request, context: ContextDep) -> BrowserSessionList:
    """Lists a user's browser sessions and unused sign-in links. Requires the role admin."""
    return _list(context, request, user_id)


@router.delete(
    "/users/{user_id}/sessions/{session_id}",
    operation_id="end_user_session",
    status_code=204,
    responses=problems("user.not_found", "session.not_found"),
)
def end_user_session(user_id: UserId, session_id: SessionId, caller: Admin, context: ContextDep) -> None:
    """Ends a user's session or sign-in link. Requires the role admin."""
    _end(context, caller, user_id, session_id)


def _list(context: Context, request: Request, user_id: str) -> BrowserSessionList:
    own = cookies.read(request, context.admin.cookie)
    current, link = own and sessions.name_of(own), context.admin.link_issuer
    with context.database.read() as s:
        users.get(s, user_id)
        found = sessions.of_user(s, user_id, [context.admin.fingerprint, link])
    return BrowserSessionList(
        items=[
            BrowserSession(
                id=row.id,
                link=row.issuer == link,
                current=row.id == current,
                address=row.address,
                token=row.token_id,
                created_at=row.created_at,
                expires_at=row.expires_at,
            )
            for row in found
        ]
    )


def _end(context: Context, caller: Caller, user_id: str, session_id: str) -> None:
    with context.database.begin() as s:
        users.get(s, user_id)
        sessions.end_one(s, user_id, session_id)
        audit.record(s, caller.id, "session.closed", session_id, user=user_id)
