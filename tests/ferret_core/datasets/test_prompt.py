from __future__ import annotations

from ferret_core.datasets._base import Example
from ferret_core.datasets._prompt import prompt_of


def test_with_input_it_is_the_papers_template() -> None:
    assert prompt_of(Example("Translate.", "Guten Tag", "Hello")) == (
        "Below is an instruction that describes a task, paired with an input that provides further context. "
        "Write a response that appropriately completes the request.\n\n"
        "### Instruction: Translate.\n\n"
        "### Input: Guten Tag\n\n"
        "### Response:"
    )


def test_without_input_only_its_line_is_left_out() -> None:
    with_input, without = prompt_of(Example("Add.", "2 2", "4")), prompt_of(Example("Add.", "", "4"))
    assert without == with_input.replace("### Input: 2 2\n\n", "")
