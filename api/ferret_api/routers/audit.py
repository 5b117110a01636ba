"""Endpoints of the audit log."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query

from ferret_api.access import AdminOnly
from ferret_api.context import ContextDep
from ferret_api.schemas import PAGE, PREFIX, Cursor, Limit
from ferret_core.protocol.resources.system import AuditEntry, AuditHead, AuditPage
from ferret_db.repositories import audit
from ferret_db.repositories.audit import AuditFilter

router = APIRouter(prefix=f"{PREFIX}/audit", tags=["audit"], dependencies=[AdminOnly])


class Order(StrEnum):
    """By number."""

    NEWEST = "newest"
    OLDEST = "oldest"


Wanted = Annotated[str | None, Query(max_length=200)]


@router.get("", operation_id="list_audit")
def list_audit(
    context: ContextDep,
    actor: Wanted = None,
    action: Wanted = None,
    subject: Wanted = None,
    order: Order = Order.NEWEST,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> AuditPage:
    """Lists entries of the audit log. Requires the role admin.

    `actor`, `action` and `subject` each select entries with exactly that value."""
    with context.database.read() as s:
        wanted = AuditFilter(actor, action, subject)
        page = audit.list_page(s, wanted, limit, cursor, oldest_first=order == Order.OLDEST)
        return AuditPage(items=[AuditEntry.model_validate(row) for row in page.items], next_cursor=page.next_cursor)


@router.get("/head", operation_id="get_audit_head")
def get_audit_head(context: ContextDep) -> AuditHead:
    """Returns the number and the hash of the last entry. Requires the role admin."""
    with context.database.read() as s:
        return AuditHead.model_validate(audit.head(s))
