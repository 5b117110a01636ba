"""The text in front of a response, by template; the response follows the last colon directly.

``paper``: as the Ferret paper prints it (its tables "Prompt template for ..."). Where an example has no input, the
paper leaves out the line ``### Input:`` and nothing else, so the first sentence stays.

``alpaca`` and ``dolly``: as published, with a line break after each heading and first sentences of its own for an
example without input. ``alpaca`` is Alpaca's template (Taori et al., 2023,
https://github.com/tatsu-lab/stanford_alpaca): the codes of Ferret and FedKSeed have it on Natural Instructions, where
all examples have an input, FederatedScope-LLM on CodeAlpaca and GSM8K. ``dolly`` is theirs on Dolly-15K.
"""

from __future__ import annotations

from typing import NamedTuple

from ferret_core.datasets._base import Example
from ferret_core.protocol.spec import Worded


class Wording(NamedTuple):
    """A template: its first sentences with an input and without, and what stands between a heading and its text."""

    preamble: str
    without_input: str
    gap: str


TASK = "Below is an instruction that describes a task"
CONTEXT = f"{TASK}, paired with an input that provides further context."
APPROPRIATELY = "Write a response that appropriately completes the request."
FOR_THE_TASK = "Write a response for the task request."
WORDINGS: dict[Worded, Wording] = {
    "paper": Wording(f"{CONTEXT} {APPROPRIATELY}", f"{CONTEXT} {APPROPRIATELY}", " "),
    "alpaca": Wording(f"{CONTEXT} {APPROPRIATELY}", f"{TASK}. {APPROPRIATELY}", "\n"),
    "dolly": Wording(f"{CONTEXT} {FOR_THE_TASK}", f"{TASK}. {FOR_THE_TASK}", "\n"),
}


def prompt_of(example: Example, template: Worded = "paper") -> str:
    """The text in front of the response."""
    preamble, without_input, gap = WORDINGS[template]
    given = [f"### Input:{gap}{example.input}"] if example.input else []
    first = preamble if example.input else without_input
    return "\n\n".join([first, f"### Instruction:{gap}{example.instruction}", *given, "### Response:"])
