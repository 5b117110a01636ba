"""Options that several commands share, declared once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ferret_core.protocol.errors import FerretError

CONNECTION = "Connection"
"""The panel of the options that most commands share."""

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        rich_help_panel=CONNECTION,
        help="Address of the server; default: FERRET_URL, or the server that runs in FERRET_HOME.",
        show_default=False,
    ),
]
InsecureHttp = Annotated[
    bool,
    typer.Option(
        "--insecure-http",
        rich_help_panel=CONNECTION,
        envvar="FERRET_INSECURE_HTTP",
        help="Allow plain http to another machine: others on the network can read the token and change the answers.",
    ),
]
Ca = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        rich_help_panel=CONNECTION,
        envvar="FERRET_CA",
        metavar="FILE",
        help="Certificate authorities for the server's certificate, in PEM; default: SSL_CERT_FILE, "
        "else the usual ones.",
        show_default=False,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON document on stdout; messages go to stderr.")
]
JsonLines = Annotated[
    bool, typer.Option("--json", help="Print each result as one line of JSON on stdout; messages go to stderr.")
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="a.b=VALUE",
        help="Change a value, as TOML; may be repeated. Another algorithm, dataset or partition drops the "
        "previous one's options.",
    ),
]
Unset = Annotated[
    list[str] | None, typer.Option("--unset", metavar="a.b", help="Reset a value to its default; may be repeated.")
]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=(
            "Start from paper, fast or private. It replaces FILE's values for the same settings; "
            "--set takes precedence over both."
        ),
        show_default=False,
    ),
]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="OURS=YOURS",
        help="Name of a field in your data, such as instruction=question; may be repeated, for instruction, input, "
        "output, messages, and unit, such as a patient, if the experiment protects records by a field.",
    ),
]
SiteFile = Annotated[
    Path | None,
    typer.Option(
        "--site",
        metavar="FILE.py",
        help="Train and evaluate by your own functions: a Python file with a ferret_sdk.Site. It is executed.",
        show_default=False,
    ),
]
SpecFile = Annotated[Path, typer.Argument(metavar="FILE", help="Experiment specification, in TOML or JSON.")]
SpecFileOrNone = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        help="Experiment specification, in TOML or JSON; not needed if --set gives all required values.",
        show_default=False,
    ),
]
Id = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the experiment, the beginning of its id, its name, or `latest`.")
]
Group = Annotated[
    str | None, typer.Option("--group", help="All members of this group of enrolment codes.", show_default=False)
]
ParticipantName = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the participant, as `ferret participant list` lists it.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Home = Annotated[Path, typer.Option("--home", envvar="FERRET_HOME", help="The server's folder.", file_okay=False)]
Port = Annotated[int, typer.Option("--port", envvar="FERRET_PORT", min=1, max=65535, help="Port of the API.")]
TlsCert = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert",
        envvar="FERRET_TLS_CERT",
        metavar="FILE",
        help="Certificate in PEM format, followed by its authorities'. A renewed certificate is loaded automatically.",
        show_default=False,
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(
        "--tls-key",
        envvar="FERRET_TLS_KEY",
        metavar="FILE",
        help="The certificate's private key, readable only by you.",
        show_default=False,
    ),
]
DEFAULT_PORT = 8765
DEFAULT_HOME = Path("~/.ferret")
ProjectName = Annotated[str, typer.Argument(metavar="PROJECT", help="Name of the project.")]
Project = Annotated[
    str | None, typer.Option("--project", help="Project of the experiment; not needed if you see only one.")
]
Priority = Annotated[
    int | None,
    typer.Option(
        "--priority",
        min=1,
        max=8,
        help="Number of trainings for each one of an experiment of priority 1, which is the default.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", help="Idempotency key: repeating the command with the same one creates no second experiment."
    ),
]


def field_names(given: Sequence[str]) -> dict[str, str]:
    """Parses ``--field OURS=YOURS``; raises ``request.invalid`` for another form and for a repeated field."""
    names: dict[str, str] = {}
    for pair in given:
        ours, equals, theirs = pair.partition("=")
        if not equals or ours in names:
            message = "give each field once, as OURS=YOURS, such as instruction=question"
            raise FerretError.of_field("request.invalid", "--field", pair, message)
        names[ours] = theirs
    return names
