"""Runs a specification at a service: submitted under its key, followed to its end, cancelled when it is pruned."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

from ferret_cli.output import say
from ferret_cli.progress import round_lines
from ferret_cli.tune.runner import OnRound, Runner
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_sdk.service.run import Run
from ferret_sdk.service.service import Service


def runner(service: Service) -> Runner:
    """Runs at ``service``. A run that was under way when the command ended has gone on there, and is found again; one
    that failed or was cancelled before that was recorded is begun anew."""

    def run(spec: ExperimentSpec, key: str, on_round: OnRound) -> None:
        submitted = _submit(service, spec, key)
        say(f"{submitted.id}: {service.url}/experiments/{submitted.id}")
        for line in round_lines(submitted, submitted.events()):
            try:
                on_round(line)
            except Exception:
                _cancel(submitted)
                raise
        submitted.refresh().require_completed()

    return run


def _submit(service: Service, spec: ExperimentSpec, key: str) -> Run:
    for attempt in count(1):
        run = service.submit(spec, f"{key}-{attempt}").refresh()
        if run.state not in (ExperimentState.FAILED, ExperimentState.CANCELLED):
            return run
    raise AssertionError("there is no end to attempts")


def _cancel(run: Run) -> None:
    """It may have ended in the meantime."""
    with suppress(FerretError):
        run.cancel()
