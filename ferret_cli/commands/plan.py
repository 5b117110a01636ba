"""``ferret plan [FILE]``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say


def plan(
    file: options.SpecFileOrNone = None,
    assignments: options.Assignments = None,
    unset: options.Unset = None,
    preset: options.Preset = None,
    shape: Annotated[
        str | None,
        typer.Option(help="Plan for a model of this shape, e.g. llama-3b, instead of FILE's.", show_default=False),
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(min=1, help="Examples per participant, used to convert epochs to steps.", show_default=False),
    ] = None,
    tokens: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="Tokens per sequence, prompt and answer together; default: measured on the data, "
            "or 256 without data here.",
            show_default=False,
        ),
    ] = None,
    teraflops: Annotated[
        float | None,
        typer.Option(min=1e-6, help="A participant's speed; default: this machine's, measured.", show_default=False),
    ] = None,
    digest: Annotated[
        bool,
        typer.Option(
            "--digest",
            help="Also load the model, and print its digest over all files: for model.digest in FILE, "
            "and for allow.models in a site's site.toml.",
        ),
    ] = False,
    json: options.Json = False,
) -> None:
    """Estimate the traffic, memory and time of the experiment in FILE, and the noise in its model.

    A model in a local folder takes a few local steps to measure this machine's speed; nothing is kept.
    """
    from ferret_cli import spec_input
    from ferret_cli.estimate_output import (
        advice_lines,
        digest_of,
        lengths_of,
        lines,
        on_this_machine,
        speed_of,
    )
    from ferret_core import catalog
    from ferret_core.experiment.estimate import Speed, assumed_speed, document, estimate
    from ferret_core.models import architecture

    experiment = on_this_machine(catalog.resolve(spec_input.load(file, assignments or (), unset or (), preset)))
    spec = experiment.spec
    model = architecture.of_llama(shape) if shape else architecture.of_folder(spec.model.source)
    lengths = lengths_of(experiment, model, tokens)
    if teraflops:
        speed = Speed.assumed(1e12 * teraflops)
    else:
        speed = assumed_speed() if shape else speed_of(experiment, model, lengths)
    found = estimate(experiment, model, examples, lengths, speed)
    of_model = digest_of(spec.model) if digest else None
    if json:
        emit({**document(found), **({"digest": of_model} if of_model else {})})
    else:
        print("\n".join([*lines(found), *([f"digest of the model   {of_model}"] if of_model else [])]))
    for line in advice_lines(found):
        say(line)
