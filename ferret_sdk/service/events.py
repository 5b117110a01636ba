"""A follower of an experiment's server-sent events, across broken connections and server restarts."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ferret_core.protocol import bounded_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.events import Event
from ferret_sdk.http.retry import PATIENT, Retry, Transient
from ferret_sdk.http.transport import Stream, Transport, read_model

MAX_EVENT = 1 << 20
"""Maximum length of an event in characters. Ferret's have some hundreds."""
# Not str.splitlines: JSON text may contain characters that it takes for line ends.
_LINE_END = re.compile(r"\r\n|\n|\r")
NOTHING_MORE = 204


class ServerSentEvent(NamedTuple):
    """One dispatched event: its id ('' if none), type and data."""

    id: str
    event: str
    data: str


def parse_events(chunks: Iterable[bytes]) -> Iterator[ServerSentEvent]:
    """Yields complete events. An event that a broken connection cut off is dropped, as the standard demands.

    Raises ``server.unexpected`` for an event or line of more than :data:`MAX_EVENT` characters.
    """
    event, identity, data, length = "message", "", list[str](), 0
    for line in _lines(chunks):
        if not line:
            if data:
                yield ServerSentEvent(identity, event, "\n".join(data))
            event, data, length = "message", [], 0
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
            length += len(value) + 1
            _bound(length)
        elif field == "event":
            event = value
        elif field == "id":
            identity = value


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
    rest = ""
    for chunk in chunks:
        rest += decoder.decode(chunk)
        # A final \r may be the first half of a \r\n.
        held = rest.endswith("\r")
        *lines, rest = _LINE_END.split(rest[:-1] if held else rest)
        rest += "\r" if held else ""
        yield from lines
        _bound(len(rest))


def _bound(length: int) -> None:
    if length > MAX_EVENT:
        raise FerretError("server.unexpected", f"the server sent an event of more than {MAX_EVENT} characters")


def follow(transport: Transport, experiment: str, after: int = 0) -> Iterator[Event]:
    """Yields each event with a number above ``after`` exactly once and in order, until the server has no more.

    Only the server knows the last event: a completed experiment may have been extended.
    """
    retry = Retry(PATIENT)
    over = False
    while True:
        try:
            with transport.stream(f"/experiments/{experiment}/events/stream", _resume(after)) as stream:
                if stream.status == NOTHING_MORE:
                    return
                for event in _events(stream, after):
                    after, over = event.seq, event.final
                    retry.reset()
                    yield event
            if over:
                continue
            raise Transient(FerretError("server.unreachable", f"{transport.url} keeps ending the event stream"))
        except Transient as failure:
            retry.wait(failure)


def _resume(after: int) -> dict[str, str]:
    return {"Accept": "text/event-stream", "Last-Event-ID": str(after)}


def _events(stream: Stream, after: int) -> Iterator[Event]:
    for message in parse_events(stream.chunks):
        event = _event(message.data)
        if event.seq > after:
            after = event.seq
            yield event


def _event(data: str) -> Event:
    try:
        return read_model(Event, bounded_json.parse(data.encode(), 4 * MAX_EVENT))
    except ValueError as error:
        raise FerretError("server.unexpected", f"the event cannot be read: {data[:200]}") from error
