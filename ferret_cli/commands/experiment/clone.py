"""``ferret experiment clone ID``"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ferret_cli import options


def clone(
    id: options.Id,
    assignments: options.Assignments = None,
    unset: options.Unset = None,
    project: Annotated[
        str | None, typer.Option("--project", help="Project that the copy belongs to, if another than the original's.")
    ] = None,
    key: options.Key = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Submit a copy of an experiment, with changes."""
    from ferret_cli import spec_input
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_core.experiment.diff import differences
    from ferret_sdk.http.transport import is_loopback
    from ferret_sdk.service.service import Service

    service = Service(url, insecure_http=insecure_http)
    changes = spec_input.changes(assignments or (), unset or (), absolute_paths=is_loopback(service.url))
    original = experiment(service, id)
    run = original.clone(changes, key, project=project)
    for field, before, after in differences(original.experiment.spec, run.experiment.spec):
        say(f"{field}: {_told(before)} → {_told(after)}")
    say(f"{run.id} is {run.state.value}, like {original.id}; follow it: ferret experiment watch {run.id}")
    if json:
        emit(run.experiment)
    else:
        print(run.id)


def _told(value: Any) -> str:
    return "unset" if value is None else repr(value)
