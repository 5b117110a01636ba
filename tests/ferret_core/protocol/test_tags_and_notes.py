"""Tags and notes in any script, one way to write each."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from ferret_core.protocol.tags_and_notes import LONGEST_NOTES, LONGEST_TAG, MOST_TAGS, Notes, Tags, retagged
from tests.refusals import refused

TAGS = TypeAdapter(Tags)
NOTES = TypeAdapter(Notes)


def test_tags_are_told_apart_by_their_words_alone() -> None:
    given = ["K  search ", "k search", "\u5fc3\u81d3", "cafe\u0301", "caf\u00e9", "\U0001f9ea"]
    assert TAGS.validate_python(given) == ["caf\u00e9", "K search", "\u5fc3\u81d3", "\U0001f9ea"]


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ([" "], "has no letter"),
        (["\u200d"], "has no letter"),
        (["a\u202eb"], "U\\+202E"),
        (["x" * (LONGEST_TAG + 1)], "shorten it"),
        ([str(number) for number in range(MOST_TAGS + 1)], "at most 20"),
        ([7], "string"),
    ],
)
def test_what_is_no_tag_is_refused_with_the_reason(tags: list[object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        TAGS.validate_python(tags)


def test_notes_keep_their_lines_and_nothing_that_a_terminal_obeys() -> None:
    assert NOTES.validate_python("# K\r\n\n\tcode\x1b[2J\n\n") == "# K\n\n    code[2J"
    with pytest.raises(ValidationError, match="shorten them"):
        NOTES.validate_python("x" * (LONGEST_NOTES + 1))


def test_tags_are_added_and_taken_away() -> None:
    assert retagged(["a", "b"], ["C", "A "], ["B"]) == ["a", "C"]
    with refused("request.invalid", "a tag has no letter"):
        retagged([], [""], [])
