"""A reader of server-sent events (WHATWG HTML §9.2.6) from a stream of bytes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ferret_core.protocol.errors import FerretError

MAX_EVENT = 1 << 20
"""Maximum length of an event in characters. Ferret's have some hundreds."""
# Not str.splitlines: JSON text may contain characters that it takes for line ends.
_LINE_END = re.compile(r"\r\n|\n|\r")


class Message(NamedTuple):
    """One dispatched event: its id ('' if none), type and data."""

    id: str
    event: str
    data: str


def parse(chunks: Iterable[bytes]) -> Iterator[Message]:
    """Yields complete events. An event that a broken connection cut off is dropped, as the standard demands.

    Raises ``server.unexpected`` for an event or line of more than :data:`MAX_EVENT` characters.
    """
    event, identity, data, length = "message", "", list[str](), 0
    for line in _lines(chunks):
        if not line:
            if data:
                yield Message(identity, event, "\n".join(data))
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
