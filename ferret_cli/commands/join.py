"""``ferret join URL``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import advising
from ferret_cli.requirements_check import require_training


def join(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the server.")],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE.jsonl",
            help="Your examples, one JSON object per line: instruction, input, output. They never leave this machine. "
            "Required, but not with --inspect.",
            show_default=False,
        ),
    ] = None,
    code: Annotated[
        str | None,
        typer.Option(
            "--code",
            envvar="FERRET_CODE",
            help="Your enrolment code, the same one again after a restart; without it, ferret join "
            "prompts for it. Others on this machine can read a command line: use --code-file or "
            "the variable.",
            show_default=False,
        ),
    ] = None,
    code_file: Annotated[
        Path | None, typer.Option("--code-file", metavar="FILE", help="File with your enrolment code; - for stdin.")
    ] = None,
    field: options.Fields = None,
    site: options.SiteFile = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="Your display name for the others, in any script, of up to 200 characters; default: this machine's.",
        ),
    ] = None,
    keep_model: Annotated[
        Path | None,
        typer.Option(
            "--keep-model",
            metavar="DIR",
            help="After the experiment, write the tuned model here, rebuilt from the ledger and checked.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="DIR|hub",
            help="Folder with the base model's weights, or `hub` for the model and revision that the "
            "experiment names there; they are used in place, and checked by their digest. "
            "Default: the server's.",
        ),
    ] = None,
    give_up_after: Annotated[
        float | None,
        typer.Option(
            "--give-up-after",
            metavar="HOURS",
            min=0,
            help="Hours to wait for an unreachable server; default: no limit.",
        ),
    ] = None,
    terms: Annotated[
        Path | None,
        typer.Option(
            "--terms",
            metavar="site.toml",
            help="This site's own terms, which apply to all requests of the server; default: FERRET_HOME/site.toml.",
        ),
    ] = None,
    inspect: Annotated[
        bool,
        typer.Option(
            "--inspect",
            help="Show the experiment of your code: model, data format, algorithm, bytes per round, smallest group and "
            "readers. The code is not used, and nothing is sent but the code.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Train once on the present model and print the resulting upload, part by part. Your "
            "code is used and your place is kept; no assignment is taken and no contribution is "
            "sent.",
        ),
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help=("Consent to contributions that may reveal single examples; without it, ferret join prompts you."),
        ),
    ] = False,
    insecure_http: options.InsecureHttp = False,
    ca: options.Ca = None,
    json: options.JsonLines = False,
) -> None:
    """Take part in an experiment with your own data, until it ends; with --json, print every round as one line of
    JSON."""
    import socket

    if inspect:
        _inspect(url, code, code_file, terms, insecure_http=insecure_http, ca=ca, json=json)
        return
    if data is None:
        raise typer.BadParameter("is required to take part; --inspect alone needs none", param_hint="--data")
    require_training()

    from ferret_cli import hooks_file
    from ferret_cli.join_display import NEXT_STEPS, JoinOptions, begin, show_preview, take_part
    from ferret_cli.secret_input import enrolment_code
    from ferret_sdk.participant.local_examples import read_examples
    from ferret_sdk.participant.participant import Participant
    from ferret_sdk.participant.site_terms import read
    from ferret_sdk.service import base_model_weights
    from ferret_sdk.service.download import require_empty

    begin()
    with advising(NEXT_STEPS):
        # A code works once: check that the data are readable before using it.
        fields = options.field_names(field or [])
        read_examples(data, fields)
        own = None if site is None else hooks_file.load(site)
        if keep_model is not None:
            require_empty(keep_model, "--keep-model")
        if base is not None and base != base_model_weights.HUB:
            base_model_weights.require_weights(Path(base))
        secret = enrolment_code(code, code_file)
        own_name, own_terms = name or socket.gethostname(), None if terms is None else read(terms)
        participant = Participant.enrol(
            url, secret, own_name, insecure_http=insecure_http, ca=ca, terms=own_terms, base=base
        )
        if dry_run:
            show_preview(participant, data, fields, own, json=json)
            return
        seconds = None if give_up_after is None else give_up_after * 3600
        take_part(participant, JoinOptions(data, fields, own, keep_model, seconds, yes, json))


def _inspect(
    url: str,
    code: str | None,
    code_file: Path | None,
    terms: Path | None,
    *,
    insecure_http: bool,
    ca: Path | None,
    json: bool,
) -> None:
    from ferret_cli.join_display import NEXT_STEPS, show_inspection
    from ferret_cli.secret_input import enrolment_code
    from ferret_sdk.participant.invitation import inspect
    from ferret_sdk.participant.site_terms import read

    with advising(NEXT_STEPS):
        own = None if terms is None else read(terms)
        found = inspect(url, enrolment_code(code, code_file), insecure_http=insecure_http, ca=ca, terms=own)
        show_inspection(found, json=json)
