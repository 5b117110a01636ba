"""The audit log: a hash chain of actions, in which every change, removal or reordering shows.

An entry holds the hash of the previous one, as the ledger's records do. Anyone with write access to the database can
still rewrite the whole chain: that shows only against a :class:`Head` that was stored elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AwareDatetime, Field, ValidationError

from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError, cut
from ferret_core.protocol.ids import Digest
from ferret_core.protocol.sanitize import Line, shown
from ferret_core.protocol.spec import StrictModel

LONGEST_VALUE = 500
"""Maximum number of characters of a value in ``detail``."""
MOST_VALUES = 20
"""Maximum number of values in ``detail``."""

AuditAction = Literal[
    "experiment.submitted",
    "experiment.cloned",
    "experiment.edited",
    "experiment.paused",
    "experiment.resumed",
    "experiment.extended",
    "experiment.cancelled",
    "experiment.archived",
    "experiment.unarchived",
    "experiment.deleted",
    "enrolment.created",
    "enrolment.revoked",
    "enrolment.refused",
    "enrolment.inspected",
    "participant.enrolled",
    "participant.approved",
    "participant.refused",
    "participant.revoked",
    "sign_in.link_made",
    "session.opened",
    "session.closed",
    "sign_in.failed",
    "project.created",
    "project.changed",
    "project.deleted",
    "member.added",
    "member.removed",
    "alert.created",
    "alert.changed",
    "alert.tested",
    "alert.deleted",
    "user.created",
    "user.changed",
    "token.created",
    "token.revoked",
    "checkpoint.downloaded",
    "update.downloaded",
    "example.drawn",
    "backup.made",
    "backup.restored",
]
"""Actions that this version writes; a reader accepts any other word too."""


class Head(NamedTuple):
    """The end of a log: the number and hash of its last entry; number 0 for an empty log."""

    number: int
    hash: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads ``12:5f0c…``, as ``str`` writes it; raises ``request.invalid``."""
        number, _, hash = text.strip().partition(":")
        if not number.isdecimal() or len(number) > 18 or (hash and not _is_digest(hash)):
            reason = "is not the head of a log: give NUMBER:HASH, as `ferret audit verify` prints it"
            raise FerretError.of_field("request.invalid", "head", text, reason)
        return cls(int(number), hash)

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"


EMPTY = Head(0, "")


class AuditRecord(StrictModel):
    """One action: ``actor`` did ``action`` to ``subject``. Both are ids such as ``admin`` or
    ``exp_0123456789abcdef``."""

    number: int = Field(ge=1, lt=2**63)
    time: AwareDatetime
    actor: Annotated[Line, Field(min_length=1, max_length=200)]
    action: Annotated[str, Field(pattern=r"^[a-z_]+\.[a-z_]+$", max_length=100)]
    subject: Annotated[Line, Field(max_length=200)]
    detail: dict[str, Any]
    previous: Digest | Literal[""] = Field(description="Hash of the previous entry; empty for number 1")

    @property
    def hash(self) -> str:
        """BLAKE3 of the canonical JSON of all fields, with the time in UTC and in microseconds."""
        time = self.time.astimezone(UTC).isoformat(timespec="microseconds")
        return digest_json({**self.model_dump(exclude={"time"}), "time": time})


class AuditEntry(NamedTuple):
    """A record as it was stored or sent, with the hash that was recorded for it."""

    number: int
    time: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    previous: str
    hash: str

    @property
    def computed_hash(self) -> str | None:
        """Hash of the entry's fields; None if they are not valid."""
        try:
            return AuditRecord.model_validate({k: v for k, v in self._asdict().items() if k != "hash"}).hash
        except ValidationError:
            return None


def bounded(detail: dict[str, Any]) -> dict[str, Any]:
    """Shortens the values of ``detail`` for an entry: numbers and booleans stay, others are cut to 500 characters."""
    assert len(detail) <= MOST_VALUES, f"{len(detail)} values"
    return {name: _bounded(value) for name, value in detail.items() if value is not None}


def verify(entries: Iterable[AuditEntry], head: Head, kept: Iterable[Head] = ()) -> int:
    """Verifies that ``entries``, from number 1, are an unbroken chain that ends at ``head``; returns their number.

    ``kept`` are earlier heads of the same log that were stored elsewhere. Raises ``audit.broken``, which names the
    first wrong number.
    """
    noted = sorted({*kept, head})
    last = EMPTY
    for entry in entries:
        if entry.number > head.number:  # written since the head was read
            break
        _check(entry, last)
        last = Head(entry.number, entry.hash)
        _compare(last, noted)
    for missed in noted:
        if missed.number > last.number:
            raise _broken(last.number + 1, f"is missing, and all after it: the log continues to number {missed.number}")
    return last.number


def _check(entry: AuditEntry, last: Head) -> None:
    if entry.number != last.number + 1:
        raise _broken(last.number + 1, f"is missing: number {entry.number} is in its place")
    if entry.computed_hash != entry.hash:
        raise _broken(entry.number, "was changed: its hash does not match its fields")
    if entry.previous != last.hash:
        raise _broken(entry.number, f"does not follow number {last.number}: one of them was replaced")


def _compare(last: Head, noted: list[Head]) -> None:
    for head in noted:
        if head.number == last.number and head.hash != last.hash:
            raise _broken(last.number, "was replaced: its hash differs from the stored head")


def _broken(number: int, reason: str) -> FerretError:
    return FerretError.of_field("audit.broken", "number", number, reason)


def _bounded(value: Any) -> Any:
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return cut(shown(value if isinstance(value, str) else repr(value)), LONGEST_VALUE)


def _is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")
