"""The demo from the first process to the last."""

from __future__ import annotations

import time
from pathlib import Path

from ferret_cli.demo import setup
from ferret_cli.demo.run import play
from ferret_cli.demo.summary import document, summary
from ferret_cli.error_output import require_completed
from ferret_cli.output import emit, say
from ferret_cli.stack.stack import Plan, Stack, running
from ferret_core.protocol.states import ExperimentState
from ferret_sdk.service.run import Run


def show(plan: Plan, *, once: bool, json: bool) -> None:
    """Runs the experiment on a stack of its own; then ends with ``once``, else serves until it is interrupted."""
    started = time.monotonic()
    with running(plan, say) as stack:
        _greet(stack, json)
        data = setup.data(plan.home)
        run = play(stack, setup.spec(data), data)
        result = document(run, _checkpoint(run, plan.home), time.monotonic() - started)
        say(summary(result))
        if json:
            emit(result)
        require_completed(run)
        if not once:
            say("still serving; Ctrl-C stops it")
            stack.keep_running()


def _greet(stack: Stack, json: bool) -> None:
    """Prints the one address; with ``--json`` stdout is for the document alone."""
    if json:
        say(stack.sign_in_address())
    else:
        print(stack.sign_in_address(), flush=True)
    say(f"in another terminal: export FERRET_HOME='{stack.plan.home}'; ferret experiment list")


def _checkpoint(run: Run, home: Path) -> Path | None:
    """The final model, downloaded as anyone would."""
    if run.state is not ExperimentState.COMPLETED:
        return None
    return run.export(home / "checkpoints" / run.id)
