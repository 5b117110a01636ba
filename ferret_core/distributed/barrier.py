"""How a piece of work ended for a whole team: the same for all, or as ``team.broken``.

An error that all processes meet, such as a loss that is no number, leaves the team whole. One that a single process
meets leaves the others waiting for it in the middle of something. It says so in the team's store, waits a little for
others with the same error, and gives up; what the others raise then has its reason in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from torch import distributed

from ferret_core.distributed.errors import team_broken, typed
from ferret_core.distributed.process_group import Team
from ferret_core.protocol.errors import FerretError

R = TypeVar("R")

GRACE_SECONDS = 10.0
"""In which processes that work in step meet the same error."""
NEWS_SECONDS = 2.0
"""In which a process that is gone has said why, if it could."""
FINE = "fine"


def together(team: Team, work: str, do: Callable[[], R], fingerprint: Callable[[R], str]) -> R:
    """``do()``, which all processes call for the same ``work``, a name that is used once.

    What it raises on all of them is raised as it is. Raises ``team.broken``, after which the team can do no more, where
    a process has gone, has another error than the others, or a result with another ``fingerprint``.
    """
    try:
        with typed():
            result = do()
    except Exception as error:
        if isinstance(error, FerretError) and error.code == "team.broken":
            raise _with_news(team, work, error) from error
        _settle(team, work, _told(error), GRACE_SECONDS)
        raise
    _settle(team, work, f"{FINE} {fingerprint(result)}", team.seconds)
    return result


def _settle(team: Team, work: str, own: str, seconds: float) -> None:
    """Waits until all processes have said how ``work`` ended for them, which must be the same."""
    keys = [_key(work, rank) for rank in range(team.size)]
    try:
        team.store.set(keys[team.rank], own)
        team.store.wait(keys, timedelta(seconds=seconds))
        said = [_text(team.store.get(key)) for key in keys]
        _forget(team, work)
    except (distributed.DistError, RuntimeError) as error:
        raise team_broken(f"process {team.rank} is alone with its outcome, {own!r}") from error
    for rank, text in enumerate(said):
        if _head(text) != _head(said[0]):
            raise team_broken(f"process {rank} ended with {text!r} and process 0 with {said[0]!r}")


def _forget(team: Team, work: str) -> None:
    """Takes the outcomes of the work before out of the store: all have come further, and have read them."""
    if team.settled is not None and team.is_first:
        for rank in range(team.size):
            team.store.delete_key(_key(team.settled, rank))
    team.settled = work


def _with_news(team: Team, work: str, error: FerretError) -> FerretError:
    """``error`` with what another process said before it went."""
    deadline = time.monotonic() + NEWS_SECONDS
    while time.monotonic() < deadline:
        for rank in range(team.size):
            if (text := _said(team, work, rank)) is not None and not text.startswith(FINE):
                return team_broken(f"process {rank} has failed alone, {text}")
        time.sleep(0.1)
    return error


def _said(team: Team, work: str, rank: int) -> str | None:
    key = _key(work, rank)
    try:
        return _text(team.store.get(key)) if team.store.check([key]) else None
    except (distributed.DistError, RuntimeError):
        return None  # the store is gone with the process that kept it


def _text(said: bytes) -> str:
    return said.decode(errors="replace")


def _told(error: Exception) -> str:
    if isinstance(error, FerretError):
        return f"{error.code}: {error.detail}"
    return f"{type(error).__name__}: {error}"


def _head(text: str) -> str:
    """What must be the same: the whole of a good end, and the kind of an error, which may name a device."""
    return text if text.startswith(FINE) else text.partition(":")[0]


def _key(work: str, rank: int) -> str:
    return f"outcome/{work}/{rank}"
