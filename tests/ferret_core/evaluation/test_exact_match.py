from __future__ import annotations

from decimal import Decimal

import pytest

from ferret_core.evaluation.evaluate import exact_matches, final_number


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("7 + 5 = <<7+5=12>>12\n#### 12", "12"),
        ("#### 12\n\n### Instruction: 9 apples\n#### 9", "12"),  # the first mark, as in the official code
        ("So it is 3 and not 4.", "4"),
        ("#### $1,234.50 in all", "1234.5"),
        ("#### -3", "-3"),
        ("it sinks by \u22123", "-3"),
        ("10-5", "5"),
        ("half: .5", "0.5"),
        ("#### 5.", "5"),
        ("#### 7.0", "7"),
        ("#### none, but 8", "8"),
        ("I do not know.", None),
    ],
)
def test_the_number_an_answer_comes_to(answer: str, number: str | None) -> None:
    assert final_number(answer) == (None if number is None else Decimal(number))


def test_answers_are_right_or_wrong_where_references_end_in_a_number() -> None:
    answers = ["It is 12.", "It is 13.", "no idea", "12"]
    references = [["6 * 2\n#### 12"]] * 3 + [["12, without a mark"]]
    assert exact_matches(answers, references) == [True, False, False]
    assert exact_matches(["#### 2"], [["#### 1", "#### 2.00"]]) == [True], "any accepted one"
    assert exact_matches(["1"], [["#### 1. Introduction\nText"]]) == [], "a heading is no final answer"
