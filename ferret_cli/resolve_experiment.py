"""The server and the experiment that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from ferret_sdk.service.run import Run
    from ferret_sdk.service.service import Service


def connect(url: str | None, insecure_http: bool) -> Service:
    """Returns the client of the server at ``url``, or of the default one. Imports the SDK here: it is slow."""
    from ferret_sdk.service.service import Service

    return Service(url, insecure_http=insecure_http)


def experiment_at(url: str | None, insecure_http: bool, given: str) -> Run:
    """Returns that server's experiment by id, beginning of an id, name or ``latest``."""
    return connect(url, insecure_http).experiment(given)


def member_or_group(argument: str, member: str | None, group: str | None) -> tuple[str, str] | tuple[None, str]:
    """Returns the given one of the two, with an empty group for a member; raises ``request.invalid`` otherwise."""
    if member is not None and group is None:
        return member, ""
    if member is None and group is not None:
        return None, group
    raise FerretError("request.invalid", f"give either {argument} or --group")
