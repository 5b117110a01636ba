"""JSON that somebody sends is parsed only if what it makes is bounded."""

from __future__ import annotations

import pytest

from ferret_core.protocol import bounded_json

MOST = 1600


def test_the_value_is_what_json_says() -> None:
    assert bounded_json.parse('{"a": [1, "ö", null]}'.encode(), MOST) == {"a": [1, "ö", None]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b" " * (MOST + 1), "is longer than 1600 bytes"),
        (b"[" * 65 + b"]" * 35, "is nested deeper than 64 levels"),
        (b"[" + b"1," * 99 + b"1]", "has more than 100 values"),
        (b"{", "Expecting property name"),
        ("[]".encode("utf-16"), "utf-8"),
    ],
)
def test_anything_else_is_a_value_error(text: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        bounded_json.parse(text, MOST)
