"""``ferret experiment codes ID`` and ``ferret experiment revoke-code ID CODE_ID``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def codes(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """List the enrolment codes of an experiment: open, used by whom, expired or revoked."""
    from datetime import UTC, datetime

    from ferret_cli.choose import experiment
    from ferret_cli.describe import code_rows
    from ferret_cli.output import emit, table
    from ferret_sdk.service import Service

    found = list(experiment(Service(url, insecure_http=insecure_http), id).codes())
    if json:
        emit({"items": [code.model_dump(mode="json") for code in found]})
        return
    table(["id", "state", "made", "expires", "used by", "shown again"], code_rows(found, datetime.now(UTC)))


def revoke_code(
    id: options.Id,
    code: Annotated[
        str, typer.Argument(metavar="CODE_ID", help="Id of the code, as `ferret experiment codes` lists it.")
    ],
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Make an unused enrolment code useless."""
    from ferret_cli.choose import experiment
    from ferret_cli.output import emit, say
    from ferret_sdk.service import Service

    revoked = experiment(Service(url, insecure_http=insecure_http), id).revoke_code(code)
    if revoked.used_at:
        say(f"{revoked.id} was used already, by {revoked.used_by}: ferret experiment revoke removes a participant")
    else:
        say(f"nobody can join with {revoked.id} any more")
    if json:
        emit(revoked)
