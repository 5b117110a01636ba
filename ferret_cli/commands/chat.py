"""``ferret chat EXPERIMENT|FOLDER [QUESTION]``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def chat(
    model: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT|FOLDER",
            help="Folder of an exported model; or an experiment: its id, its beginning, its name, or `latest`.",
        ),
    ],
    question: Annotated[
        str | None,
        typer.Argument(metavar="QUESTION", help="The instruction; without it, questions are asked one by one."),
    ] = None,
    input: Annotated[
        str, typer.Option("--input", metavar="TEXT", help="What the instruction is about.", show_default=False)
    ] = "",
    round: Annotated[
        int | None,
        typer.Option(
            "--round", min=0, help="Round of the experiment's checkpoint; 0 is the base model; default: the latest."
        ),
    ] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Longest answer, in tokens.")] = 200,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Ask a tuned model, in the words it was trained with.

    An experiment's model is exported once, into FERRET_HOME/chat. Every question is asked alone: training knows no
    conversation. Ctrl-C ends an answer.
    """
    from ferret_cli.requirements_check import require_training
    from ferret_core.protocol.errors import FerretError

    require_training()
    if json and question is None:
        raise FerretError("request.invalid", "--json prints one answer: give the QUESTION as an argument")

    from ferret_cli import chatting

    folder = chatting.find(model, round, url, insecure_http=insecure_http)
    asked = chatting.Chat(folder, max_tokens)
    if question is None:
        asked.converse(input)
    else:
        asked.once(question, input, json=json)
