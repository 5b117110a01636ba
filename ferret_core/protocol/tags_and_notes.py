"""What people write about an experiment beside its specification: tags, to find it by, and notes.

Neither changes what is trained, so both may be changed at any time.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, Field

from ferret_core.protocol.display_name import readable
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.sanitize import shown_lines

LONGEST_TAG = 40
"""Characters."""
MOST_TAGS = 20
LONGEST_NOTES = 20_000
"""Characters."""
TAB = 4


def normal_tag(text: str) -> str:
    """The tag in NFC with single blanks between its words; ``ValueError`` if it is none."""
    return readable(" ".join(text.split()), LONGEST_TAG, "give a word to find experiments by")


def tag_key(tag: str) -> str:
    """What tags are compared by: upper and lower case are the same tag."""
    return unicodedata.normalize("NFC", normal_tag(tag).casefold())


def distinct(tags: Iterable[str]) -> list[str]:
    """The tags in the order of their keys; of those that are the same the first."""
    found = dict[str, str]()
    for tag in tags:
        found.setdefault(tag_key(tag), tag)
    return [found[key] for key in sorted(found)]


def retagged(tags: Iterable[str], more: Iterable[str], fewer: Iterable[str]) -> list[str]:
    """The tags with ``more`` and without ``fewer``; ``request.invalid`` for one that is no tag."""
    try:
        gone = {tag_key(tag) for tag in fewer}
        return [tag for tag in distinct([*tags, *map(normal_tag, more)]) if tag_key(tag) not in gone]
    except ValueError as error:
        raise FerretError("request.invalid", f"a tag {error}") from error


def normal_notes(text: str) -> str:
    """The notes in NFC, without controls and blank ends; tabs are blanks, so that code that they indent stays code."""
    notes = shown_lines(unicodedata.normalize("NFC", text).expandtabs(TAB)).rstrip()
    if len(notes) > LONGEST_NOTES:
        raise ValueError(f"have {len(notes)} characters; shorten them to {LONGEST_NOTES}")
    return notes


Tag = Annotated[
    str,
    AfterValidator(normal_tag),
    Field(
        description="A few words in any script; upper and lower case are the same tag",
        json_schema_extra={"minLength": 1, "maxLength": LONGEST_TAG},
    ),
]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS), AfterValidator(distinct)]
Notes = Annotated[
    str,
    AfterValidator(normal_notes),
    Field(description="Markdown", json_schema_extra={"maxLength": LONGEST_NOTES}),
]
