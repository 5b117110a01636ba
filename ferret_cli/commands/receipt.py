"""``ferret receipt …``: a participant's proof, fetched from the server and checked by the file alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, show_line
from ferret_cli.resolve_experiment import experiment_at
from ferret_core.protocol.errors import FerretError

app = typer.Typer(help="Proof that a round holds a contribution.", no_args_is_help=True)


@app.command("show", epilog="Example: ferret receipt show latest hospital-a --round 3 > receipt.json")
def show(
    id: options.Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The participant, or a simulated client.")],
    round: Annotated[int, typer.Option("--round", min=1, help="Number of the round.")],
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
) -> None:
    """Print the receipt for a participant's contribution to a committed round: one JSON document, which `ferret receipt
    verify` checks.
    """
    run = experiment_at(url, insecure_http, id)
    emit(run.receipt(round, name))


@app.command("verify", epilog="Example: ferret receipt verify receipt.json")
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The receipt; `ferret site log --json` shows its path.")],
    hash: Annotated[
        str | None,
        typer.Option("--hash", metavar="HASH", help="The round's hash from another person, or from an earlier note."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Check that a round's record holds a contribution, by the receipt alone.

    It contacts no server. Only the round's hash shows that everybody has the same record: `ferret experiment verify`
    prints it for each round. Exit code 1 if the receipt proves nothing, or is about another record.
    """
    from ferret_sdk.participant.receipts import outcome_of, read

    receipt = read(file)
    leaf, header = receipt.verified(), receipt.header
    if hash is not None and hash != receipt.hash:
        message = f"is not the hash of round {header.round} in this receipt, {receipt.hash}"
        raise FerretError.of_field("receipt.invalid", "--hash", hash, message)
    outcome, signed = outcome_of(leaf), "not signed" if leaf.public_key is None else f"signed with {leaf.public_key}"
    why = "" if outcome.reason is None else f", {outcome.reason}"
    held = f"holds contribution {leaf.contribution} of {leaf.participant}"
    show_line(f"round {header.round} of {header.experiment} {held}", as_json=json)
    show_line(f"{outcome.state}{why}; {signed}", as_json=json)
    compared = "compared" if hash else "to be compared with what others have"
    show_line(f"the round's hash is {receipt.hash}, {compared}", as_json=json)
    if json:
        emit(
            {
                "experiment": header.experiment,
                "round": header.round,
                **leaf.model_dump(mode="json"),
                "state": outcome.state,
                "hash": receipt.hash,
                "compared": hash is not None,
            }
        )
