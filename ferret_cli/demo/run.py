"""Runs the demo's experiment on a running stack and tells how it goes."""

from __future__ import annotations

import time
from pathlib import Path

from ferret_cli.output import say
from ferret_cli.progress import HEADER, line_of, measured
from ferret_cli.stack import process_specs
from ferret_cli.stack.child import Child
from ferret_cli.stack.stack import Stack
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_sdk.http.retry import AWAY
from ferret_sdk.service.run import Run
from ferret_sdk.service.service import Service

PARTICIPANT = "edge-1"
STEP_SECONDS = 0.3


def play(stack: Stack, spec: ExperimentSpec, data: Path) -> Run:
    """Submits ``spec``, lets a real participant join with its own file, and returns when the experiment has ended."""
    service = Service(stack.plan.url, stack.token)
    run = service.submit(spec)
    say(f"submitted {run.id}: {spec.rounds} rounds, {spec.participants.simulated} simulated clients and {PARTICIPANT}")
    stack.supervisor.start(_participant(stack, service.enrolment(run.id).code, data / "edge.jsonl"))
    say(HEADER)
    told = 0
    while not run.state.finished:
        stack.supervisor.supervise()
        try:
            told = _tell(run, told)
        except FerretError as error:
            # The API may be the one that is being restarted.
            if error.code not in AWAY:
                raise
        time.sleep(STEP_SECONDS)
    return run


def _tell(run: Run, told: int) -> int:
    """Prints what happened after event ``told`` and returns the last event told."""
    for event in run.past_events(told):
        if (number := measured(run, event)) is not None:
            say(str(line_of(run, number)))
        told = event.seq
        if event.final:
            run.refresh()
    return told


def _participant(stack: Stack, code: str, examples: Path) -> Child:
    """``ferret join`` as anyone would run it; the code goes by the environment, where other users cannot see it."""
    home = stack.plan.home
    arguments = [stack.plan.url, "--data", str(examples), "--name", PARTICIPANT, "--yes"]
    environment = {"FERRET_CODE": code, "FERRET_HOME": str(home / PARTICIPANT), "OMP_NUM_THREADS": "1"}
    return process_specs.participant(home, PARTICIPANT, arguments, environment)
