"""What one process decides for all: whether to go on."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import TypeAdapter

from ferret_core.protocol.errors import PROBLEMS, FerretError
from ferret_core.team.broken import team_broken
from ferret_core.team.group import Team

_CODE_AND_DETAIL = TypeAdapter(tuple[str, str] | None)


def as_first(team: Team, check: Callable[[], None]) -> None:
    """Raises in every process the :class:`FerretError` that ``check()`` raises in the first one, which alone calls it.
    Collective."""
    error: FerretError | None = None
    if team.is_first:
        try:
            check()
        except FerretError as found:
            error = found
    told = team.values(None if error is None else (error.code, error.detail), _CODE_AND_DETAIL)[0]
    if error is not None:
        raise error
    if told is not None:
        code, detail = told
        if code not in PROBLEMS:
            raise team_broken("process 0 sends an error that does not exist")
        raise FerretError(code, detail)
