"""The Alpaca prompt template as the Ferret paper prints it (its tables "Prompt template for ...").

The response follows the last colon directly. Where an example has no input, the paper leaves out the line
``### Input:`` and nothing else, so the first sentence stays.
"""

from __future__ import annotations

from ferret_core.datasets._base import Example

PREAMBLE = (
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request."
)


def prompt_of(example: Example) -> str:
    """The text in front of the response."""
    given = [f"### Input: {example.input}"] if example.input else []
    return "\n\n".join([PREAMBLE, f"### Instruction: {example.instruction}", *given, "### Response:"])
