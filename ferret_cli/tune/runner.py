"""Runners of a trial's experiments: in this process, or on a service."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Protocol

from ferret_cli.output import say, unforeseen
from ferret_cli.round_progress import RoundLine, round_lines
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_sdk.service.run import Run
from ferret_sdk.service.service import Service

if TYPE_CHECKING:
    from ferret_core.simulate import RoundResult


OnRound = Callable[[RoundLine], None]


class Runner(Protocol):
    """Runs a specification to its end and reports every round, the base model first.

    ``key`` identifies the run permanently: a run that was interrupted with the command may continue. An exception of
    ``on_round`` stops the run and is raised again; a failure of the run is raised as a :class:`FerretError`.
    """

    def __call__(self, spec: ExperimentSpec, key: str, on_round: OnRound) -> None: ...


class _Told(Exception):
    """An exception of ``on_round``, distinguished from the simulation's own."""

    def __init__(self, raised: Exception) -> None:
        self.raised = raised


def run_here(spec: ExperimentSpec, key: str, on_round: OnRound) -> None:
    """Returns a :class:`Runner` in this process; an unforeseen exception becomes the run's failure, ``internal``."""
    from ferret_cli.simulation_output import line
    from ferret_core.simulate import simulate

    def tell(done: RoundResult) -> None:
        try:
            on_round(line(done, spec.rounds))
        except Exception as error:
            raise _Told(error) from error

    try:
        simulate(spec, on_round=tell)
    except _Told as told:
        raise told.raised from None
    except FerretError:
        raise
    except Exception as error:
        raise unforeseen(error) from error


def runner_at(service: Service, project: str | None) -> Runner:
    """Returns a :class:`Runner` on ``service``, with experiments of ``project``.

    A run interrupted with the command has continued there, and is found again. A run that failed or was cancelled
    before its result was recorded is started again.
    """

    def run(spec: ExperimentSpec, key: str, on_round: OnRound) -> None:
        submitted = _submit(service, spec, key, project)
        say(f"{submitted.id}: {service.url}/experiments/{submitted.id}")
        for line in round_lines(submitted, submitted.events()):
            try:
                on_round(line)
            except Exception:
                _cancel(submitted)
                raise
        submitted.refresh().require_completed()

    return run


def _submit(service: Service, spec: ExperimentSpec, key: str, project: str | None) -> Run:
    for attempt in count(1):
        run = service.submit(spec, f"{key}-{attempt}", project=project).refresh()
        if run.state not in (ExperimentState.FAILED, ExperimentState.CANCELLED):
            return run
    raise AssertionError("there is no end to attempts")


def _cancel(run: Run) -> None:
    with suppress(FerretError):
        run.cancel()
