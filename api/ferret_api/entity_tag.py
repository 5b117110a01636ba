"""What ``If-Match`` and ``If-None-Match`` ask for (RFC 9110, section 13.1)."""

from __future__ import annotations


def matches(wanted: str, tag: str) -> bool:
    """Whether one of the entity tags of the header's value ``wanted`` is ``tag``, with its quotes, or any will do.

    A proxy that compresses answers makes their tags weak; what we give tags to is the same byte by byte, so a weak one
    counts too.
    """
    return any(candidate.strip().removeprefix("W/") in {tag, "*"} for candidate in wanted.split(","))
