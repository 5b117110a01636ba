"""``ferret submit [FILE]``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, require_completed, say
from ferret_cli.resolve_experiment import connect


def submit(
    file: options.SpecFileOrNone = None,
    assignments: options.Assignments = None,
    unset: options.Unset = None,
    preset: options.Preset = None,
    project: options.Project = None,
    priority: options.Priority = None,
    key: options.Key = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show the rounds until the experiment ends.")] = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Submit the experiment in FILE, or the one described by --set.

    ${NAME} in a value is replaced by the environment variable.
    """
    from ferret_cli import spec_input
    from ferret_cli.estimate_output import summary
    from ferret_cli.round_progress import watch_to_the_end
    from ferret_sdk.http.transport import is_loopback

    service = connect(url, insecure_http)
    spec = spec_input.load(file, assignments or (), unset or (), preset, absolute_paths=is_loopback(service.url))
    for fact in summary(spec):
        say(fact)
    run = service.submit(spec, key, project=project, priority=priority)
    say(f"{run.id} is {run.state.value}")
    if watch:
        watch_to_the_end(run)
    else:
        say(f"follow it: ferret experiment watch {run.id}")
        say(f"or in a browser: {service.url}/experiments/{run.id}")
    if json:
        emit(run.experiment)
    else:
        print(run.id)
    if watch:
        require_completed(run)
