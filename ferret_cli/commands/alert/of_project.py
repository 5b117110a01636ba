"""Which project an alert belongs to, and which alert is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ferret_sdk.service.service import Service

OfProject = Annotated[
    str | None,
    typer.Option("--project", help="Project whose experiments it is about; not needed by who sees only one."),
]
AlertId = Annotated[str, typer.Argument(metavar="ID", help="Id of the alert, as ferret alert list shows it.")]


def chosen(service: Service, project: str | None) -> str:
    """The project that was named, or the only one that the caller sees; ``request.invalid`` if there are several."""
    from ferret_core.protocol.errors import FerretError

    if project is not None:
        return project
    seen = service.people.me().projects
    if len(seen) == 1:
        return seen[0]
    choice = f"say which: one of {', '.join(seen)}" if seen else "ask an administrator to make you a member of one"
    raise FerretError.of_field("request.invalid", "--project", None, f"an alert belongs to a project; {choice}")
