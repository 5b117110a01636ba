"""A participant's progress, for display."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import Awaited

log = logging.getLogger(__name__)


class Stage(StrEnum):
    """A participant's work in the order of a round, and the ways of waiting.

    ``TURN``: for another participant on this machine that is fetching the base model; ``WAIT``: for the others of a
    round; ``OUTAGE``: for the server; ``REST``: until the site's own terms let it go on.
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
    """``done`` of ``total``, 0 where that is unknown: bytes of the base model or of an upload, rounds to catch up with,
    local steps, participants that are waited for, seconds that the server has been away. ``total`` alone is also the
    seconds until the site's own terms let it go on.

    ``round`` is 0 before round 1. ``awaited`` belongs to ``WAIT``.
    """

    stage: Stage
    round: int = 0
    done: float = 0
    total: float = 0
    awaited: Awaited | None = None


Watcher = Callable[[Progress], None]


def log_outages(progress: Progress) -> None:
    """Warns in the log while the server is away, where nobody else watches."""
    if progress.stage == Stage.OUTAGE:
        log.warning("the server does not answer, for %.0f s now; it is asked again", progress.done)


class Totals(NamedTuple):
    """What taking part came to since this process began: rounds contributed to, bytes of bodies each way, seconds of
    training."""

    rounds: int
    bytes_up: int
    bytes_down: int
    seconds: float


class RoundReport(NamedTuple):
    """One round as this participant saw it: what it sent, or ``error`` for why it sent nothing.

    ``size`` is in bytes, ``loss`` is the participant's own mean training loss.
    """

    round: int
    size: int = 0
    seconds: float = 0.0
    loss: float | None = None
    error: FerretError | None = None
