"""Endpoints for user accounts, and for the caller's own account."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, StringConstraints, model_validator

from ferret_api.access import Admin, AdminOnly, Caller, Viewer
from ferret_api.auth import cookies, passwords
from ferret_api.context import Context, ContextDep
from ferret_api.http.errors import problems
from ferret_api.rate_limit_middleware import count_attempt
from ferret_api.schemas import PAGE, PREFIX, Command, Cursor, Limit
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.users import CurrentUser, User, UserPage
from ferret_core.protocol.roles import Role
from ferret_db.repositories import audit, projects, users

UserName = Annotated[
    str,
    StringConstraints(to_lower=True, min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]*$"),
    Field(description="Unique; letters (converted to lower case), digits, and `.` `_` `@` `+` `-`"),
]
Password = Annotated[str, Field(min_length=12, max_length=200, description="At least 12 characters")]


class NewUser(Command, json_schema_extra={"examples": [{"name": "ada", "role": "researcher"}]}):
    """Request to create a user. Without a password the user has tokens only."""

    name: UserName
    role: Role
    password: Password | None = Field(default=None, repr=False)


class UserChange(Command, json_schema_extra={"examples": [{"enabled": False}]}):
    """Request to change a user. Changing the password or disabling the user signs it out everywhere."""

    role: Role | None = None
    enabled: bool | None = None
    password: Password | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _something(self) -> UserChange:
        if self.role is None and self.enabled is None and self.password is None:
            raise ValueError("nothing is to be changed: give role, enabled or password")
        return self


class NewPassword(
    Command,
    json_schema_extra={
        "examples": [{"current": "the sentence until now", "password": "another sentence from now on"}]  # nosec B105
    },
):
    """Request to change one's password."""

    current: str = Field(max_length=200, repr=False)
    password: Password = Field(repr=False)


router = APIRouter(prefix=PREFIX, tags=["users"])

UserId = Annotated[str, Path(max_length=64, description="Id of the user, e.g. `usr_0123456789abcdef`")]


@router.get("/me", operation_id="get_me")
def get_me(caller: Viewer) -> CurrentUser:
    """Returns the caller: name, role, scopes and projects. Requires the role viewer."""
    with caller.database.read() as s:
        has_password = users.get(s, caller.id).password_hash is not None
        seen = projects.names(s)
    return CurrentUser(
        id=caller.id,
        name=caller.name,
        role=caller.role,
        scopes=sorted(caller.scopes),
        has_password=has_password,
        projects=seen,
    )


@router.put("/me/password", operation_id="change_password", status_code=204, responses=problems("password.invalid"))
async def change_password(wanted: NewPassword, caller: Viewer, request: Request, context: ContextDep) -> None:
    """Changes the caller's password and ends the caller's other sessions. Tokens stay valid.

    `password.invalid` if the current password is wrong, or if the account has none. Requires the role viewer."""
    await count_attempt(request.scope, context)
    session = cookies.read(request, context.admin.cookie)
    await context.passwords.run(partial(_change_password, wanted, caller, session, context), request)


def _change_password(wanted: NewPassword, caller: Caller, session: str | None, context: Context) -> None:
    with context.database.read() as s:
        stored = users.get(s, caller.id).password_hash
    if not passwords.is_right(wanted.current, stored):
        reason = "`current` is not this account's password" if stored else "this account has no password"
        raise FerretError(
            "password.invalid", f"{reason}; an administrator can give it one: ferret user set-password NAME"
        )
    hashed = passwords.hashed(wanted.password)
    with context.database.begin() as s:
        users.change(s, caller.id, session=session, password_hash=hashed)
        audit.record(s, caller.id, "user.changed", caller.id, password=True)


@router.get("/users", operation_id="list_users", dependencies=[AdminOnly])
def list_users(context: ContextDep, limit: Limit = PAGE, cursor: Cursor = None) -> UserPage:
    """Lists all user accounts. Requires the role admin."""
    with context.database.read() as s:
        page = users.list_page(s, limit, cursor)
        return UserPage(items=[User.model_validate(row) for row in page.items], next_cursor=page.next_cursor)


@router.post("/users", operation_id="create_user", status_code=201, responses=problems("user.conflict"))
async def create_user(wanted: NewUser, caller: Admin, request: Request, context: ContextDep) -> User:
    """Creates an account. Requires the role admin."""
    hashed = None if wanted.password is None else await _hashed(wanted.password, request, context)
    return await run_in_threadpool(_create, wanted, hashed, caller, context)


def _create(wanted: NewUser, hashed: str | None, caller: Caller, context: Context) -> User:
    with context.database.begin() as s:
        user = users.create(s, wanted.name, wanted.role, hashed)
        audit.record(s, caller.id, "user.created", user.id, name=user.name, role=user.role.value)
        return User.model_validate(user)


@router.patch("/users/{user_id}", operation_id="change_user", responses=problems("user.not_found", "user.conflict"))
async def change_user(
    user_id: UserId, wanted: UserChange, caller: Admin, request: Request, context: ContextDep
) -> User:
    """Changes a user's role or password, or enables or disables the account. Requires the role admin.

    Disabling an account ends its sessions and suspends its tokens until it is enabled again."""
    values: dict[str, Any] = wanted.model_dump(exclude_none=True, exclude={"password"})
    details = {name: str(value) if name == "role" else value for name, value in values.items()}
    if wanted.password is not None:
        values["password_hash"], details["password"] = await _hashed(wanted.password, request, context), True
    return await run_in_threadpool(_change, user_id, values, details, caller, context)


def _change(user_id: str, values: dict[str, Any], details: dict[str, Any], caller: Caller, context: Context) -> User:
    with context.database.begin() as s:
        user = users.change(s, user_id, **values)
        audit.record(s, caller.id, "user.changed", user_id, **details)
        return User.model_validate(user)


async def _hashed(password: str, request: Request, context: Context) -> str:
    return await context.passwords.run(partial(passwords.hashed, password), request)
