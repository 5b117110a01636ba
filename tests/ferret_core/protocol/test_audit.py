"""The chain of the audit log: whatever is done to it afterwards is found, at the first number that is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferret_core.protocol.audit import EMPTY, LONGEST_VALUE, AuditEntry, AuditRecord, Head, bounded, verify
from tests.refusals import refused

START = datetime(2026, 11, 23, 8, 0, 0, 1000, UTC)


def chain(length: int) -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    for number in range(1, length + 1):
        record = AuditRecord(
            number=number,
            time=START + timedelta(seconds=number),
            actor="admin",
            action="experiment.paused",
            subject=f"exp_{number:016x}",
            detail={"rounds": number, "share": 0.1},
            previous=entries[-1].hash if entries else "",
        )
        entries.append(AuditEntry(**record.model_dump(), hash=record.hash))
    return entries


def head(entries: Sequence[AuditEntry]) -> Head:
    return Head(entries[-1].number, entries[-1].hash) if entries else EMPTY


def rehashed(entry: AuditEntry) -> AuditEntry:
    return entry._replace(hash=entry.computed_hash or "")


def rewritten(entries: Sequence[AuditEntry], number: int) -> list[AuditEntry]:
    """The log as somebody with access to the database would forge it: all from ``number`` on is hashed anew."""
    forged = list(entries[: number - 1])
    for entry in entries[number - 1 :]:
        actor = "somebody else" if entry.number == number else entry.actor
        forged.append(rehashed(entry._replace(actor=actor, previous=forged[-1].hash if forged else "")))
    return forged


def broken_at(entries: Sequence[AuditEntry], head: Head, *kept: Head) -> int:
    with refused("audit.broken") as caught:
        verify(entries, head, kept)
    (error,) = caught.value.errors
    return error.value


@given(st.integers(0, 12))
def test_an_untouched_log_is_whole(length: int) -> None:
    entries = chain(length)
    assert verify(entries, head(entries), [head(entries[:number]) for number in range(length)]) == length


CHANGES: dict[str, Callable[[AuditEntry], AuditEntry]] = {
    "time": lambda entry: entry._replace(time=entry.time + timedelta(microseconds=1)),
    "actor": lambda entry: entry._replace(actor="usr_1"),
    "action": lambda entry: entry._replace(action="experiment.deleted"),
    "subject": lambda entry: entry._replace(subject=""),
    "detail": lambda entry: entry._replace(detail={**entry.detail, "rounds": True}),
    "what no entry can say": lambda entry: entry._replace(action="Nothing at all"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("number", [1, 3, 5])
def test_a_changed_entry_is_named(change: Callable[[AuditEntry], AuditEntry], number: int) -> None:
    entries = chain(5)
    entries[number - 1] = change(entries[number - 1])
    assert broken_at(entries, head(chain(5))) == number


WHOLE = chain(5)
DAMAGED: dict[str, tuple[list[AuditEntry], int]] = {
    "changed and hashed anew": ([*WHOLE[:2], rehashed(WHOLE[2]._replace(actor="nobody")), *WHOLE[3:]], 4),
    "the first is gone": (WHOLE[1:], 1),
    "the second is gone": ([WHOLE[0], *WHOLE[2:]], 2),
    "the fourth is gone": ([*WHOLE[:3], WHOLE[4]], 4),
    "gone, and its number given on": (
        [*WHOLE[:2], *(entry._replace(number=entry.number - 1) for entry in WHOLE[3:])],
        3,
    ),
    "changed places": (
        [WHOLE[0], WHOLE[3]._replace(number=2), WHOLE[2], WHOLE[1]._replace(number=4), WHOLE[4]],
        2,
    ),
    "all are cut off": ([], 1),
    "the tail is cut off": (WHOLE[:1], 2),
    "the last is cut off": (WHOLE[:4], 5),
}


@pytest.mark.parametrize(("entries", "number"), DAMAGED.values(), ids=DAMAGED)
def test_what_was_removed_moved_or_forged_is_found_where_it_is(entries: list[AuditEntry], number: int) -> None:
    assert broken_at(entries, head(WHOLE)) == number


def test_a_tail_that_was_cut_off_with_the_head_shows_against_one_that_was_kept() -> None:
    entries = chain(5)
    shorter = entries[:3]
    assert verify(shorter, head(shorter)) == 3
    assert broken_at(shorter, head(shorter), head(entries)) == 4


@pytest.mark.parametrize("number", [1, 3, 5])
def test_a_log_that_was_written_anew_shows_against_a_head_that_was_kept(number: int) -> None:
    entries, forged = chain(5), rewritten(chain(5), number)
    assert verify(forged, head(forged)) == 5
    assert broken_at(forged, head(forged), head(entries[:number])) == number


def test_what_is_written_while_one_reads_is_no_fault() -> None:
    entries = chain(5)
    assert verify(entries, head(entries[:3])) == 3


def test_a_head_is_read_as_it_is_written() -> None:
    for kept in (EMPTY, head(chain(3))):
        assert Head.parse(f" {kept}\n") == kept


@pytest.mark.parametrize("text", ["", "x", "3:abc", "-1:", "3:" + "g" * 64, "9" * 30 + ":"])
def test_what_is_no_head_is_refused(text: str) -> None:
    with refused("request.invalid", "NUMBER:HASH"):
        Head.parse(text)


def test_a_detail_is_bounded_and_safe_to_show() -> None:
    detail = bounded({"name": "\x1b[2J" + "x" * 9999, "rounds": 3, "left": None, "rate": math.nan, "list": ["a"] * 999})
    assert detail["name"] == "[2J" + "x" * (LONGEST_VALUE - 4) + "…"
    assert detail["rounds"] == 3
    assert detail["rate"] == "nan"
    assert "left" not in detail
    assert max(len(str(value)) for value in detail.values()) <= LONGEST_VALUE
