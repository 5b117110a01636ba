"""The audit log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from ferret_core.protocol.ids import Digest
from ferret_core.protocol.resources.base import Json, Page, Resource
from ferret_core.protocol.sanitize import Line


class AuditEntry(Resource):
    """One recorded action. Its hash is the BLAKE3 of the canonical JSON of all other fields."""

    number: Annotated[int, Field(ge=1, lt=2**63)] = Field(description="From 1, without gaps")
    time: AwareDatetime = Field(description="In UTC with microseconds, which the hash covers")
    actor: Line = Field(description="Actor: `admin`, `host` for commands on the server's machine, `nobody`, or an id")
    action: Line = Field(description="Action, e.g. `experiment.paused`")
    subject: Line = Field(description="Target: the id of an experiment or a session, the file of a backup, …")
    detail: Json
    previous: str = Field(description="Hash of the previous entry; empty for number 1")
    hash: str


class AuditPage(Page[AuditEntry]):
    """Entries by number."""


class AuditHead(Resource):
    """End of the log. A stored copy proves later that no earlier entry was changed."""

    number: Annotated[int, Field(ge=0, lt=2**63)] = Field(description="Number of the last entry; 0 for an empty log")
    hash: Digest | Literal[""] = Field(description="Hash of the last entry; empty for an empty log")
