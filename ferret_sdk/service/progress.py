"""A participant's progress, for display."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import WaitReason

log = logging.getLogger(__name__)


class Stage(StrEnum):
    """A participant's work in the order of a round, and the reasons for waiting.

    ``TURN``: another participant on this machine is fetching the base model; ``WAIT``: others in the round are not
    done; ``OUTAGE``: the server is away; ``REST``: the site's terms do not permit work now.
    """

    TURN = "turn"
    DOWNLOAD = "download"
    CATCH_UP = "catch_up"
    TRAIN = "train"
    UPLOAD = "upload"
    WAIT = "wait"
    OUTAGE = "outage"
    REST = "rest"


class Progress(NamedTuple):
    """A progress report. ``done`` of ``total`` is 0 where that is unknown.

    They count bytes of the base model or of an upload, rounds to catch up with, local steps, missing participants, or
    seconds since the server went away. ``total`` alone is also the seconds until the site's terms permit work.

    ``round`` is 0 before round 1. ``awaited`` belongs to ``WAIT``.
    """

    stage: Stage
    round: int = 0
    done: float = 0
    total: float = 0
    awaited: WaitReason | None = None


Watcher = Callable[[Progress], None]


def log_outages(progress: Progress) -> None:
    """Logs a warning while the server is away; for programs without a display."""
    if progress.stage == Stage.OUTAGE:
        log.warning("the server has not answered for %.0f s; retrying", progress.done)


class Totals(NamedTuple):
    """Totals since this process began: rounds contributed to, bytes of bodies by direction, seconds of training."""

    rounds: int
    bytes_up: int
    bytes_down: int
    seconds: float


class RoundReport(NamedTuple):
    """One round as this participant saw it: its contribution, or the ``error`` that prevented one.

    ``size`` is in bytes, ``loss`` is the participant's mean training loss.
    """

    round: int
    size: int = 0
    seconds: float = 0.0
    loss: float | None = None
    error: FerretError | None = None
