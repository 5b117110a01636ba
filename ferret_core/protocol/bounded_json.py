"""Parsing of untrusted JSON: its size in memory is bounded before it is parsed.

Three bytes, such as ``{},``, become an object of some hundred bytes. Tokens (strings, brackets and commas) are
therefore counted first. Every value needs at least one, and takes at most a hundred bytes in addition to its text.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 64
BYTES_PER_TOKEN = 16
"""Bytes per token of a text of the maximum length; a shorter text may have fewer."""
# Matches invalid JSON too, and reads each byte once.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.|\\\Z)*+"?|[\[\]{},]', re.DOTALL)
_CHANGES = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def parse(text: bytes, most_bytes: int) -> Any:
    """Parses a UTF-8 text of at most ``most_bytes``.

    Raises ``ValueError`` if it is longer, has more than ``most_bytes / BYTES_PER_TOKEN`` tokens, is nested deeper than
    ``MAX_DEPTH``, or is not JSON.
    """
    if len(text) > most_bytes:
        raise ValueError(f"is longer than {most_bytes} bytes")
    require_outline(text, most_bytes // BYTES_PER_TOKEN, MAX_DEPTH)
    # Decoded here, because json accepts UTF-16 too, in which the tokens are other bytes.
    return json.loads(text.decode("utf-8-sig"))


def require_outline(text: bytes, most: int, deepest: int) -> None:
    """Raises ``ValueError`` if a UTF-8 text has more than ``most`` tokens, or is nested deeper than ``deepest``."""
    depth = 0
    for number, token in enumerate(_TOKEN.finditer(text)):
        depth += _CHANGES.get(token[0], 0)
        if number >= most:
            raise ValueError(f"has more than {most} values")
        if depth > deepest:
            raise ValueError(f"is nested deeper than {deepest} levels")


def marks(text: bytes) -> int:
    """Counts brackets, commas and quotation marks: an upper bound of the number of tokens, in one fast pass."""
    return sum(map(text.count, (b"[", b"]", b"{", b"}", b",", b'"')))
