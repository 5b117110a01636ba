"""``ferret receipt …``: a participant's proof, checked by the file alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say
from ferret_core.protocol.errors import FerretError

app = typer.Typer(help="Proof that a round holds a contribution.", no_args_is_help=True)


@app.command("verify")
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
    say(f"round {header.round} of {header.experiment} holds contribution {leaf.contribution} of {leaf.participant}")
    say(f"{outcome.state}{why}; {signed}")
    say(f"the round's hash is {receipt.hash}, {'compared' if hash else 'to be compared with what others have'}")
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
