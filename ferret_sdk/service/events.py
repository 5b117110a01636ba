"""A follower of an experiment's server-sent events, across broken connections and server restarts."""

from __future__ import annotations

from collections.abc import Iterator

from ferret_core.protocol import bounded_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.events import Event
from ferret_sdk.http import sse
from ferret_sdk.http.answers import read
from ferret_sdk.http.retry import PATIENT, Retry, Transient
from ferret_sdk.http.transport import Stream, Transport

NOTHING_MORE = 204


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
    for message in sse.parse(stream.chunks):
        event = _event(message.data)
        if event.seq > after:
            after = event.seq
            yield event


def _event(data: str) -> Event:
    try:
        return read(Event, bounded_json.parse(data.encode(), 4 * sse.MAX_EVENT))
    except ValueError as error:
        raise FerretError("server.unexpected", f"the event cannot be read: {data[:200]}") from error
