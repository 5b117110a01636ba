"""Where the runs of a trial go: into this process, or to a service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ferret_cli.progress import RoundLine
from ferret_core.protocol.spec import ExperimentSpec

OnRound = Callable[[RoundLine], None]


class Runner(Protocol):
    """Runs a specification to its end and tells every round, the base model first.

    ``key`` names the run for good: one that was under way when the command ended may continue. What ``on_round`` raises
    stops the run and is raised again; so is what made the run fail, as a :class:`FerretError`.
    """

    def __call__(self, spec: ExperimentSpec, key: str, on_round: OnRound) -> None: ...
