"""``ferret experiment receipt ID NAME --round N``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def receipt(
    id: options.Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The participant, or a simulated client.")],
    round: Annotated[int, typer.Option("--round", min=1, help="Number of the round.")],
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
) -> None:
    """Print the receipt for a participant's contribution to a committed round, for `ferret receipt verify`."""
    from ferret_cli.output import emit
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id)
    emit(run.receipt(round, name))
