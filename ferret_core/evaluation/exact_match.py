"""Exact match: equality of the final numbers of an answer and its reference.

Cobbe et al., "Training Verifiers to Solve Math Word Problems", 2021, https://arxiv.org/abs/2110.14168, and
``grade_school_math/dataset.py`` in https://github.com/openai/grade-school-math. A reference has its number in the last
line, ``#### 42``; references without it are not counted. The first number after ``####`` in an answer counts, as there.

Differences from the official code: in an answer without ``####``, which is wrong there, the last number counts. Numbers
are compared, not their texts, so that 5.0 equals 5. Both ignore thousands separators; only this one ignores a dollar
sign.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

# A minus after a word or a digit is a hyphen or an operator: in 10-5 the last number is 5.
_NUMBER = r"(?:(?<!\w)[-−])?\$?(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
_ANYWHERE = re.compile(_NUMBER)
_MARKED = re.compile(rf"####\s*({_NUMBER})")
_LAST_LINE = re.compile(rf"^####\s*({_NUMBER})\s*\Z", re.MULTILINE)


def exact_matches(answers: Sequence[str], references: Sequence[Sequence[str]]) -> list[bool]:
    """Returns True for each answer with the number of one of its references; those without a number are omitted."""
    wanted = [{_value(found[1]) for text in texts if (found := _LAST_LINE.search(text))} for texts in references]
    return [final_number(answer) in numbers for answer, numbers in zip(answers, wanted, strict=True) if numbers]


def final_number(answer: str) -> Decimal | None:
    """Returns the final number of ``answer``, if any."""
    if marked := _MARKED.search(answer):
        return _value(marked[1])
    numbers = _ANYWHERE.findall(answer)
    return _value(numbers[-1]) if numbers else None


def _value(number: str) -> Decimal:
    return Decimal(number.replace(",", "").replace("$", "").replace("−", "-"))
