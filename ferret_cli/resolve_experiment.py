"""The server and the experiment that a command names."""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import TYPE_CHECKING

from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from ferret_sdk.service.run import Run
    from ferret_sdk.service.service import Service

LATEST = "latest"
_ID = re.compile(r"exp_[0-9a-f]{16}")


def connect(url: str | None, insecure_http: bool) -> Service:
    """Returns the client of the server at ``url``, or of the default one. Imports the SDK here: it is slow."""
    from ferret_sdk.service.service import Service

    return Service(url, insecure_http=insecure_http)


def experiment_at(url: str | None, insecure_http: bool, given: str) -> Run:
    """Returns the ``given`` experiment of that server, as :func:`experiment` does."""
    return experiment(connect(url, insecure_http), given)


def experiment(service: Service, given: str) -> Run:
    """Returns the experiment by its id, the beginning of its id, its name, or ``latest``, the newest that is not
    archived.

    Raises ``experiment.not_found`` for no match, and with the ids for several.
    """
    if _ID.fullmatch(given):
        return service.experiment(given)
    if given == LATEST:
        found = list(islice(service.experiments(), 1))
    else:
        listed = chain(service.experiments(), service.experiments(archived=True))
        found = [each for each in listed if each.id.startswith(given) or each.name == given]
    if len(found) == 1:
        return service.experiment(found[0].id)
    ids = ", ".join(each.id for each in found)
    message = f"could be any of {ids}: give more of the id" if found else "no experiment has this id or name"
    raise FerretError.of_field("experiment.not_found", "ID", given, message)


def member_or_group(argument: str, member: str | None, group: str | None) -> tuple[str, str] | tuple[None, str]:
    """Returns the given one of the two, with an empty group for a member; raises ``request.invalid`` otherwise."""
    if member is not None and group is None:
        return member, ""
    if member is None and group is not None:
        return None, group
    raise FerretError("request.invalid", f"give either {argument} or --group")
