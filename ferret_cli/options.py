"""Options that several commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option(
        "--url", help="Address of the server; default FERRET_URL, else the one in FERRET_HOME.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, messages on stderr.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="a.b=VALUE", help="Override a value of the file, as TOML; may be repeated."),
]
SpecFile = Annotated[Path, typer.Argument(metavar="FILE", help="Experiment specification in TOML.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the experiment, as `ferret experiment list` shows it.")]
Home = Annotated[
    Path, typer.Option("--home", envvar="FERRET_HOME", help="Folder of everything the server keeps.", file_okay=False)
]
Port = Annotated[int, typer.Option("--port", envvar="FERRET_PORT", min=1, max=65535, help="Port of the API.")]
DEFAULT_PORT = 8765
DEFAULT_HOME = Path("~/.ferret")
