"""Tags, notes and priority of an experiment, in addition to its specification.

They do not affect training, so they can change at any time. Priority is the experiment's share of the workers.
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
"""Maximum number of characters."""
MOST_TAGS = 20
LONGEST_NOTES = 20_000
"""Maximum number of characters."""
TAB = 4
LEAST_PRIORITY, MOST_PRIORITY = 1, 8

Priority = Annotated[
    int,
    Field(
        ge=LEAST_PRIORITY,
        le=MOST_PRIORITY,
        description="Trainings it gets for each one of an experiment with priority 1; queued experiments with higher "
        "priority start first",
    ),
]


def normal_tag(text: str) -> str:
    """Returns the tag in NFC with single blanks between its words; raises ``ValueError`` if it is not valid."""
    return readable(" ".join(text.split()), LONGEST_TAG, "give a word to find experiments by")


def tag_key(tag: str) -> str:
    """Returns the key that tags are compared by; upper and lower case are equal."""
    return unicodedata.normalize("NFC", normal_tag(tag).casefold())


def distinct(tags: Iterable[str]) -> list[str]:
    """Returns the tags in the order of their keys; of equal ones the first."""
    found = dict[str, str]()
    for tag in tags:
        found.setdefault(tag_key(tag), tag)
    return [found[key] for key in sorted(found)]


def retagged(tags: Iterable[str], more: Iterable[str], fewer: Iterable[str]) -> list[str]:
    """Returns the tags with ``more`` and without ``fewer``; raises ``request.invalid`` for an invalid tag."""
    try:
        gone = {tag_key(tag) for tag in fewer}
        return [tag for tag in distinct([*tags, *map(normal_tag, more)]) if tag_key(tag) not in gone]
    except ValueError as error:
        raise FerretError("request.invalid", f"a tag {error}") from error


def normal_notes(text: str) -> str:
    """Normalises notes to NFC without controls and trailing blanks; tabs become blanks, so that code stays code."""
    notes = shown_lines(unicodedata.normalize("NFC", text).expandtabs(TAB)).rstrip()
    if len(notes) > LONGEST_NOTES:
        raise ValueError(f"have {len(notes)} characters; shorten them to {LONGEST_NOTES}")
    return notes


Tag = Annotated[
    str,
    AfterValidator(normal_tag),
    Field(
        description="A few words in any script; case-insensitive",
        json_schema_extra={"minLength": 1, "maxLength": LONGEST_TAG},
    ),
]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS), AfterValidator(distinct)]
Notes = Annotated[
    str, AfterValidator(normal_notes), Field(description="Markdown", json_schema_extra={"maxLength": LONGEST_NOTES})
]
