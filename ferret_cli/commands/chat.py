"""``ferret chat EXPERIMENT|FOLDER [QUESTION]``"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say
from ferret_cli.requirements_check import require_training
from ferret_cli.resolve_experiment import experiment_at
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.sanitize import shown_lines

if TYPE_CHECKING:
    from ferret_sdk.service.run import Run

CACHE = "chat"


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
        typer.Argument(metavar="QUESTION", help="The instruction; without it, ferret chat prompts for questions."),
    ] = None,
    input: Annotated[
        str, typer.Option("--input", metavar="TEXT", help="Text that the instruction refers to.", show_default=False)
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
    """Ask a tuned model, in the format of its training data.

    An experiment's model is exported once, into FERRET_HOME/chat. Every question is independent: training knows no
    conversation. Ctrl-C ends an answer.
    """
    require_training()
    if json and question is None:
        raise FerretError("request.invalid", "--json prints one answer: give the QUESTION as an argument")

    asked = _Chat(_find(model, round, url, insecure_http=insecure_http), max_tokens)
    if question is None:
        asked.converse(input)
    else:
        asked.once(question, input, json=json)


def _find(given: str, round: int | None, url: str | None, *, insecure_http: bool) -> Path:
    """Returns the folder of the model: ``given`` itself, or the folder of the experiment's exported checkpoint."""
    folder = Path(given).expanduser()
    if not folder.is_dir():
        return _cached(experiment_at(url, insecure_http, given), round)
    if round is not None:
        message = f"{given} is a folder, which holds one round: leave it out, or name the experiment"
        raise FerretError.of_field("request.invalid", "--round", round, message)
    return folder


def _cached(run: Run, round: int | None) -> Path:
    """Returns the experiment's exported checkpoint under ``FERRET_HOME``; it never changes: it is downloaded once."""
    from ferret_core.system.permissions import restrict_home
    from ferret_sdk.service.server_address import ClientSettings

    files = run.checkpoint(round)
    home = ClientSettings().home.expanduser()
    folder = home / CACHE / f"{run.id}-{files[0].round}"
    if not folder.is_dir():
        restrict_home(home)
        folder.parent.mkdir(parents=True, exist_ok=True)
        say(f"exporting round {files[0].round} of {run.id} to {folder}")
        run.export(folder, files[0].round)
    return folder


class _Chat:
    def __init__(self, folder: Path, max_tokens: int) -> None:
        from ferret_core.evaluation.streaming_generation import load_exported

        logging.getLogger("transformers").setLevel(logging.ERROR)  # its advice does not apply to chat
        self._folder, self._max_tokens = folder, max_tokens
        self._model, self._tokenizer, _ = load_exported(folder)

    def once(self, question: str, input: str, *, json: bool) -> None:
        """Prints one answer; Ctrl-C ends it and the command."""
        if json:
            text = self._answer(question, input, print_it=False)
            emit({"question": question, "input": input, "answer": text, "checkpoint": str(self._folder.resolve())})
        else:
            try:
                self._answer(question, input)
            except KeyboardInterrupt:
                print(flush=True)
                raise

    def converse(self, input: str) -> None:
        """Prompts for questions until the input ends; Ctrl-C ends an answer, and at the prompt the command."""
        say("Ctrl-C ends an answer, Ctrl-D ends the questions")
        while (question := _asked()) is not None:
            if not question:
                continue
            try:
                self._answer(question, input)
            except KeyboardInterrupt:
                print(flush=True)
            except FerretError as error:
                say(error.detail)

    def _answer(self, question: str, input: str, *, print_it: bool = True) -> str:
        from ferret_core.evaluation.streaming_generation import answer, question_ids

        prompt = question_ids(self._tokenizer, question, input)
        said = answer(self._model, self._tokenizer, prompt, self._max_tokens, _print if print_it else _say_nothing)
        if print_it:
            print(flush=True)
        return said.text


def _say_nothing(text: str) -> None:
    """Prints nothing, for answers that are printed as a whole."""


def _asked() -> str | None:
    try:
        return input("> ").strip()
    except (EOFError, KeyboardInterrupt):
        print(flush=True)
        return None


def _print(text: str) -> None:
    print(shown_lines(text), end="", flush=True)
