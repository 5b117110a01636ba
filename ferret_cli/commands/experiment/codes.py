"""``ferret experiment codes ID`` and ``ferret experiment revoke-code ID CODE_ID``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def codes(
    id: options.Id,
    group: options.Group = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """List the enrolment codes of an experiment: open, used by whom, expired or revoked."""
    from datetime import UTC, datetime

    from ferret_cli.experiment_tables import code_rows
    from ferret_cli.output import emit, table
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    found = list(experiment(Service(url, insecure_http=insecure_http), id).codes(group))
    if json:
        emit({"items": [code.model_dump(mode="json") for code in found]})
        return
    columns = ["id", "state", "group", "approval", "made", "expires", "used by", "shown again"]
    table(columns, code_rows(found, datetime.now(UTC)))


def revoke_code(
    id: options.Id,
    code: Annotated[
        str | None, typer.Argument(metavar="CODE_ID", help="Id of the code, as `ferret experiment codes` lists it.")
    ] = None,
    group: options.Group = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Make an unused enrolment code, or all unused ones of a group, useless."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment, member_or_group
    from ferret_sdk.service.service import Service

    code, group = member_or_group("CODE_ID", code, group)
    run = experiment(Service(url, insecure_http=insecure_http), id)
    if code is None:
        count = run.revoke_codes(group)
        say(f"{count} codes of {group} are revoked: nobody can join with them any more")
        if json:
            emit({"revoked": count})
        return
    revoked = run.revoke_code(code)
    if revoked.used_at:
        say(f"{revoked.id} was used already, by {revoked.used_by}: ferret experiment revoke removes a participant")
    else:
        say(f"nobody can join with {revoked.id} any more")
    if json:
        emit(revoked)
