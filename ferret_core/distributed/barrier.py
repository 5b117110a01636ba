"""The common outcome of a piece of work for a whole team, or ``process_group.failed``.

An error that all processes raise, such as a loss that is not finite, leaves the team intact. An error in a single
process leaves the others waiting for it. That process writes its error to the team's store, waits briefly for others
with the same error, and gives up; the others' exceptions then include its reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from torch import distributed

from ferret_core.distributed.process_group import ProcessGroup, process_group_failed, typed
from ferret_core.protocol.errors import FerretError

R = TypeVar("R")

GRACE_SECONDS = 10.0
"""Time within which synchronous processes raise the same error."""
NEWS_SECONDS = 2.0
"""Time to wait for the reason of a process that has ended."""
FINE = "fine"


def together(team: ProcessGroup, work: str, do: Callable[[], R], fingerprint: Callable[[R], str]) -> R:
    """Calls ``do()`` on all processes for the same ``work``, a name that is used once.

    An exception that all of them raise is raised unchanged. Raises ``process_group.failed``, after which the team is
    unusable, if a process has ended, has another error than the others, or a result with another ``fingerprint``.
    """
    try:
        with typed():
            result = do()
    except Exception as error:
        if isinstance(error, FerretError) and error.code == "process_group.failed":
            raise _with_news(team, work, error) from error
        _settle(team, work, _told(error), GRACE_SECONDS)
        raise
    _settle(team, work, f"{FINE} {fingerprint(result)}", team.seconds)
    return result


def _settle(team: ProcessGroup, work: str, own: str, seconds: float) -> None:
    """Waits until all processes have reported their outcome of ``work``, which must be the same."""
    keys = [_key(work, rank) for rank in range(team.size)]
    try:
        team.store.set(keys[team.rank], own)
        team.store.wait(keys, timedelta(seconds=seconds))
        said = [_text(team.store.get(key)) for key in keys]
        _forget(team, work)
    except (distributed.DistError, RuntimeError) as error:
        raise process_group_failed(f"process {team.rank} is alone with its result, {own!r}") from error
    for rank, text in enumerate(said):
        if _head(text) != _head(said[0]):
            raise process_group_failed(f"process {rank} ended with {text!r} and process 0 with {said[0]!r}")


def _forget(team: ProcessGroup, work: str) -> None:
    """Deletes the previous work's outcomes from the store: all processes have read them."""
    if team.settled is not None and team.is_first:
        for rank in range(team.size):
            team.store.delete_key(_key(team.settled, rank))
    team.settled = work


def _with_news(team: ProcessGroup, work: str, error: FerretError) -> FerretError:
    """Adds another process's last report to ``error``."""
    deadline = time.monotonic() + NEWS_SECONDS
    while time.monotonic() < deadline:
        for rank in range(team.size):
            if (text := _said(team, work, rank)) is not None and not text.startswith(FINE):
                return process_group_failed(f"process {rank} has failed alone, {text}")
        time.sleep(0.1)
    return error


def _said(team: ProcessGroup, work: str, rank: int) -> str | None:
    key = _key(work, rank)
    try:
        return _text(team.store.get(key)) if team.store.check([key]) else None
    except (distributed.DistError, RuntimeError):
        return None  # the store has ended with its process


def _text(said: bytes) -> str:
    return said.decode(errors="replace")


def _told(error: Exception) -> str:
    if isinstance(error, FerretError):
        return f"{error.code}: {error.detail}"
    return f"{type(error).__name__}: {error}"


def _head(text: str) -> str:
    """Returns the part that must be equal: all of a success, and the kind of an error, which may name a device."""
    return text if text.startswith(FINE) else text.partition(":")[0]


def _key(work: str, rank: int) -> str:
    return f"outcome/{work}/{rank}"
