"""What a participant is doing, as it tells whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from ferret_core.protocol.states import Awaited


class Stage(StrEnum):
    """A participant's work in the order of a round, and the two ways of waiting."""

    DOWNLOAD = "download"
    CATCH_UP = "catch_up"
    TRAIN = "train"
    UPLOAD = "upload"
    WAIT = "wait"
    OUTAGE = "outage"


class Progress(NamedTuple):
    """``done`` of ``total``, 0 where that is unknown: bytes of the base model or of an upload, rounds to catch up with,
    local steps, participants that are waited for, seconds that the server has been away.

    ``round`` is 0 before round 1. ``awaited`` belongs to ``WAIT``.
    """

    stage: Stage
    round: int = 0
    done: float = 0
    total: float = 0
    awaited: Awaited | None = None


Watcher = Callable[[Progress], None]


def unwatched(progress: Progress) -> None:
    """Tells nobody."""


class Totals(NamedTuple):
    """What taking part came to since this process began: rounds contributed to, bytes of bodies each way, seconds of
    training."""

    rounds: int
    bytes_up: int
    bytes_down: int
    seconds: float
