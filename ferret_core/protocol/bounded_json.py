"""JSON that somebody sends: its size in memory is bounded before it is parsed.

Three bytes, such as ``{},``, become an object of some hundred. So tokens are counted first: strings, brackets and
commas, one of which every value needs. None takes more than a hundred bytes besides its text.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 64
BYTES_PER_TOKEN = 16
"""At the limit of its length, a text has so many bytes for each token; a shorter one may have fewer."""
# It takes what is not JSON too, and looks at each byte once.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.|\\\Z)*+"?|[\[\]{},]', re.DOTALL)
_CHANGES = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def parse(text: bytes, most_bytes: int) -> Any:
    """The JSON value of a text of at most ``most_bytes``, in UTF-8.

    Raises ``ValueError`` if it is longer, has more than ``most_bytes / BYTES_PER_TOKEN`` tokens, is nested deeper than
    ``MAX_DEPTH``, or is not JSON.
    """
    if len(text) > most_bytes:
        raise ValueError(f"is longer than {most_bytes} bytes")
    depth, most = 0, most_bytes // BYTES_PER_TOKEN
    for number, token in enumerate(_TOKEN.finditer(text)):
        depth += _CHANGES.get(token[0], 0)
        if number >= most:
            raise ValueError(f"has more than {most} values")
        if depth > MAX_DEPTH:
            raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")
    # Decoded here: json would take UTF-16 too, whose bytes are other tokens.
    return json.loads(text.decode("utf-8-sig"))


def marks(text: bytes) -> int:
    """How many brackets, commas and quotation marks there are: no fewer than tokens, and counted at once."""
    return sum(map(text.count, (b"[", b"]", b"{", b"}", b",", b'"')))
