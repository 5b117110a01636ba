"""The site's egress log: every request from this machine to a server, written to disk before it is sent.

The file is append-only, with one line of JSON per request. A line carries the hash of the previous one, so no line can
be changed, removed or moved unnoticed. Anybody with write access to the file can still rewrite all of it, or cut off
its end. Comparing with a head that was stored elsewhere shows that. Bodies are recorded by size and digest; tokens and
codes are not recorded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple

import httpx
from pydantic import AwareDatetime, Field, ValidationError

from ferret_core.protocol.audit import EMPTY, Head
from ferret_core.protocol.digest import canonical_json, digest_bytes, digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import Digest, ExperimentId, ParticipantName
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.spec import StrictModel
from ferret_core.system.atomic_files import disk_full_as_error, flush_folder
from ferret_core.system.failpoints import failpoint
from ferret_sdk.participant.lock import in_turn
from ferret_sdk.participant.paths import participants_folder

LONGEST_LINE = 16 << 10
"""Maximum bytes of a line. At most half as many of an address are kept."""


class SentRequest(StrictModel):
    """One request. A repeated one has one line per attempt.

    ``size`` and ``digest`` (BLAKE3) describe its body, 0 and empty without one. ``round`` and ``contribution`` are
    set for requests that carry a contribution, or a part of it.
    """

    number: int = Field(ge=1, lt=2**63)
    time: AwareDatetime
    experiment: ExperimentId | None
    participant: ParticipantName | None
    method: Annotated[str, Field(pattern="^[A-Z]+$", max_length=20)]
    url: Annotated[str, Field(max_length=LONGEST_LINE // 2)]
    size: int = Field(ge=0, lt=2**63)
    digest: Digest | Literal[""]
    round: int | None = Field(default=None, ge=1, le=MAX_ROUNDS)
    contribution: Digest | None = None
    previous: Digest | Literal[""] = Field(description="Hash of the line before; empty for number 1")

    @property
    def hash(self) -> str:
        """Returns the BLAKE3 hash of the canonical JSON of all fields."""
        return digest_json(self.model_dump(mode="json"))


class Carried(NamedTuple):
    """The contribution that a request carries."""

    round: int
    digest: str


_carried: ContextVar[Carried | None] = ContextVar("carried", default=None)


@contextmanager
def carrying(round_number: int, digest: str) -> Generator[None]:
    """Marks this thread's requests in the ``with`` block as carrying the contribution ``digest`` of the round."""
    token = _carried.set(Carried(round_number, digest))
    try:
        yield
    finally:
        _carried.reset(token)


class SentLog:
    """The log of all participants of a ``home``; safe to use from several threads and processes."""

    _threads = Lock()

    def __init__(self, home: Path) -> None:
        self.path = participants_folder(home) / "sent.jsonl"

    def noting(self, experiment: str | None = None, participant: str | None = None) -> Callable[[httpx.Request], None]:
        """Returns a callback that logs each request before it is sent. It raises ``storage.full`` if it cannot."""

        def note(request: httpx.Request) -> None:
            body = request.read()
            carried = _carried.get() if body else None
            self.append(
                experiment=experiment,
                participant=participant,
                method=request.method,
                url=str(request.url)[: LONGEST_LINE // 2],
                size=len(body),
                digest=digest_bytes(body) if body else "",
                round=carried and carried.round,
                contribution=carried and carried.digest,
            )

        return note

    def append(self, **fields: Any) -> None:
        """Appends a line. It is on disk when this returns, and absent if it raises."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._threads, in_turn(self.path.with_suffix(".lock"), lambda: None), disk_full_as_error(self.path):
            new = not self.path.exists()
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            with os.fdopen(descriptor, "r+b", buffering=0) as file:
                last = _last(file, self.path)
                sent = SentRequest(number=last.number + 1, time=datetime.now(UTC), previous=last.hash, **fields)
                _write(file, _line(sent))
            if new:
                flush_folder(self.path.parent)

    def read(self) -> Iterator[SentRequest]:
        """Yields every request, oldest first. ``audit.broken`` names the first altered line."""
        if not self.path.exists():
            return
        last = EMPTY
        with self.path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), start=1):
                if not line.endswith(b"\n") and not file.readline(1):
                    return  # this request was never sent: the process ended while it wrote
                sent = _parsed(line, number, self.path)
                if (sent.number, sent.previous) != (number, last.hash):
                    raise _broken(number, self.path, "does not follow the line before: one was removed or moved")
                last = Head(number, sent.hash)
                yield sent


def verify(log: SentLog, kept: Head | None = None) -> Head:
    """Returns the end of the log if the log is unaltered and continues the head ``kept`` earlier."""
    last = EMPTY
    for sent in log.read():
        last = Head(sent.number, sent.hash)
        if kept is not None and last.number == kept.number and last.hash != kept.hash:
            raise _broken(last.number, log.path, "was replaced: its hash differs from the noted one")
    if kept is not None and last.number < kept.number:
        raise _broken(last.number + 1, log.path, f"is missing, and all after it: number {kept.number} was noted")
    return last


def _line(sent: SentRequest) -> bytes:
    return canonical_json({**sent.model_dump(mode="json"), "hash": sent.hash}) + b"\n"


def _last(file: BinaryIO, path: Path) -> Head:
    """Returns the end of the log, and cuts off the partial line of a killed process."""
    size = file.seek(0, os.SEEK_END)
    start = max(0, size - 2 * LONGEST_LINE)
    file.seek(start)
    whole, _, torn = file.read(size - start).rpartition(b"\n")
    if torn:
        file.truncate(size - len(torn))
    file.seek(0, os.SEEK_END)
    if not whole:
        return EMPTY
    sent = _parsed(whole.rpartition(b"\n")[2], None, path)
    return Head(sent.number, sent.hash)


def _write(file: BinaryIO, line: bytes) -> None:
    """Writes the whole line or nothing."""
    before = file.tell()
    try:
        written = 0
        while written < len(line):
            written += file.write(line[written:])
            failpoint("sent_log.written")
        os.fsync(file.fileno())
    except OSError:
        file.truncate(before)
        raise


def _parsed(line: bytes, number: int | None, path: Path) -> SentRequest:
    try:
        fields = json.loads(line)
        told = fields.pop("hash")
        sent = SentRequest.model_validate(fields)
    except (ValueError, KeyError, AttributeError, TypeError, ValidationError) as error:
        raise _broken(number, path, "cannot be read") from error
    if sent.hash != told:
        raise _broken(number or sent.number, path, "was changed: its hash does not match its content")
    return sent


def _broken(number: int | None, path: Path, reason: str) -> FerretError:
    return FerretError.of_field("audit.broken", str(path), number and f"line {number}", reason)
