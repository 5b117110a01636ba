"""What one process decides for all: whether to go on."""

from __future__ import annotations

import json
from collections.abc import Callable

from ferret_core.protocol.errors import FerretError
from ferret_core.team.group import Team


def as_first(team: Team, check: Callable[[], None]) -> None:
    """Raises in every process the :class:`FerretError` that ``check()`` raises in the first one, which alone calls it.
    Collective."""
    error: FerretError | None = None
    if team.is_first:
        try:
            check()
        except FerretError as found:
            error = found
    told = team.texts("" if error is None else json.dumps([error.code, error.detail]))[0]
    if error is not None:
        raise error
    if told:
        code, detail = json.loads(told)
        raise FerretError(code, detail)
