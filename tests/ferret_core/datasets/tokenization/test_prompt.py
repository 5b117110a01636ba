"""Templates: as the paper prints it, and as its code and FedKSeed's have it."""

from __future__ import annotations

import pytest

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.prompt import prompt_of
from ferret_core.protocol.spec import Worded

GIVEN, BARE = Example("Add.", "1 2", "3"), Example("Sing.", "", "La")


def test_the_papers_has_its_texts_behind_the_headings() -> None:
    assert prompt_of(GIVEN) == (
        "Below is an instruction that describes a task, paired with an input that provides further context. "
        "Write a response that appropriately completes the request.\n\n"
        "### Instruction: Add.\n\n"
        "### Input: 1 2\n\n"
        "### Response:"
    )


def test_of_the_papers_only_the_inputs_line_is_left_out() -> None:
    assert prompt_of(GIVEN._replace(input="")) == prompt_of(GIVEN).replace("### Input: 1 2\n\n", "")


@pytest.mark.parametrize(
    ("template", "last"),
    [
        ("alpaca", "Write a response that appropriately completes the request."),
        ("dolly", "Write a response for the task request."),
    ],
)
def test_the_published_ones_break_lines_and_have_a_sentence_for_no_input(template: Worded, last: str) -> None:
    given, bare = prompt_of(GIVEN, template), prompt_of(BARE, template)
    assert given == (
        "Below is an instruction that describes a task, paired with an input that provides further context. "
        f"{last}\n\n### Instruction:\nAdd.\n\n### Input:\n1 2\n\n### Response:"
    )
    assert bare == f"Below is an instruction that describes a task. {last}\n\n### Instruction:\nSing.\n\n### Response:"
