"""Sanitizing of texts from people, participants and servers, so that they are safe to show.

A terminal interprets some characters instead of showing them: ESC and other controls move the cursor, overwrite earlier
output or set the window's title, and direction overrides make a text read as another. These are removed. Letters of
every script, combining marks, and the joiners needed in Persian and Indic names and emoji stay (Unicode Technical
Report 36, section 3.3).
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import BeforeValidator

_BREAKS = re.compile("[\t-\r\x85\u2028\u2029]")
_UNSEEN = (
    "\x00-\x1f\x7f-\x9f"  # C0 with ESC, DEL, C1
    "\u00ad\u180e\u200b\ufeff"  # soft hyphen, vowel separator, spaces of no width
    "\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f"  # writing direction, invisible operators
    "\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"  # annotations, shorthand, tags
    "\ud800-\udfff"  # halves of a character, which no output can encode
)
_REMOVED = re.compile(f"[{_UNSEEN}]")
_ESCAPED = re.compile(f"[{_UNSEEN}\u2028\u2029]")


def shown(text: str) -> str:
    """Returns ``text`` as one line that a terminal only shows: line ends and tabs become blanks, controls are cut."""
    return _REMOVED.sub("", _BREAKS.sub(" ", text))


def shown_lines(text: str) -> str:
    r"""Sanitizes like :func:`shown`, line by line: ``\n`` and ``\r\n`` stay line ends."""
    return "\n".join(map(shown, text.replace("\r\n", "\n").split("\n")))


def shown_json(text: str) -> str:
    r"""Returns one line of JSON with the same value, in which characters that a terminal interprets are ``\uXXXX``."""
    return _ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    return json.dumps(character)[1:-1] if ord(character) > 0x7F else f"\\u{ord(character):04x}"


def _if_text(value: Any) -> Any:
    return shown(value) if isinstance(value, str) else value


def _if_lines(value: Any) -> Any:
    return shown_lines(value) if isinstance(value, str) else value


Line = Annotated[str, BeforeValidator(_if_text)]
"""One line of user text, such as a name; controls are stripped before its length is checked."""

Words = Annotated[str, BeforeValidator(_if_lines)]
"""User text of one or more lines, such as a reason; controls are stripped before its length is checked."""
