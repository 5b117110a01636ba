"""``ferret site check FILE``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options


def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.jsonl", help="Your examples, as `ferret join --data` has them.")
    ],
    field: options.Fields = None,
    json: options.Json = False,
) -> None:
    """Read your examples as `ferret join` would, without a code and without a server.

    It names the broken line or the missing field, and shows none of what stands in the file.
    """
    from ferret_cli.error_output import advising
    from ferret_cli.field_mapping import names_of
    from ferret_cli.joining import NEXT_STEPS
    from ferret_cli.output import emit, say
    from ferret_sdk.participant.local_examples import read_examples

    with advising(NEXT_STEPS):
        examples = read_examples(file, names_of(field or []))
    longest = max(len(example.output) for example in examples)
    without = sum(not example.input for example in examples)
    say(f"{len(examples)} examples, {without} without an input; the longest answer has {longest} characters")
    if json:
        emit({"examples": len(examples), "without_input": without, "longest_answer": longest})
