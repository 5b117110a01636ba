"""The audit log as the API shows it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from ferret_api.schemas import Page, Resource


class Order(StrEnum):
    """By number."""

    NEWEST = "newest"
    OLDEST = "oldest"


class AuditEntry(Resource):
    """Something that somebody did. Its hash is the BLAKE3 of the canonical JSON of all other fields."""

    number: int = Field(description="From 1, without gaps")
    time: datetime = Field(description="In UTC with microseconds, which the hash covers")
    actor: str = Field(description="Who: `admin`, `host` for commands on the server's machine, `nobody`, or an id")
    action: str = Field(description="What, e.g. `experiment.paused`")
    subject: str = Field(description="To what: the id of an experiment, a session, …; a backup's file")
    detail: dict[str, Any]
    previous: str = Field(description="Hash of the entry before; empty for number 1")
    hash: str


class AuditPage(Page[AuditEntry]):
    """Entries by number."""


class AuditHead(Resource):
    """Where the log ends. Kept elsewhere, it proves later that nothing before it was changed."""

    number: int = Field(description="Number of the last entry; 0 where there is none")
    hash: str
