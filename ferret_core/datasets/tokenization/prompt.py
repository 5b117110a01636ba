"""Prompts by template; the response follows the last colon directly.

``paper``: as printed in the Ferret paper (its tables "Prompt template for ..."). For an example without input, the
paper omits only the line ``### Input:``, so the first sentence stays.

``alpaca`` and ``dolly``: as published, with a line break after each heading and different first sentences for an
example without input. ``alpaca`` is Alpaca's template (Taori et al., 2023,
https://github.com/tatsu-lab/stanford_alpaca). The code of Ferret and FedKSeed uses it on Natural Instructions, where
all examples have an input, and FederatedScope-LLM uses it on CodeAlpaca and GSM8K. ``dolly`` is their template on
Dolly-15K.
"""

from __future__ import annotations

from typing import NamedTuple

from ferret_core.datasets.base import Example
from ferret_core.protocol.spec import Worded


class Wording(NamedTuple):
    """A template: its first sentences with and without an input, and the separator between a heading and its text."""

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
    """Returns the text before the response."""
    preamble, without_input, gap = WORDINGS[template]
    given = [f"### Input:{gap}{example.input}"] if example.input else []
    first = preamble if example.input else without_input
    return "\n\n".join([first, f"### Instruction:{gap}{example.instruction}", *given, "### Response:"])
