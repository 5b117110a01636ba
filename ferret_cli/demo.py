"""The demo's run: starts a separate stack, runs the experiment on it, and prints the result."""

from __future__ import annotations

import os
import shutil
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

from ferret_cli import spec_input
from ferret_cli.options import DEFAULT_PORT
from ferret_cli.output import emit, require_completed, say
from ferret_cli.round_progress import HEADER, line_of
from ferret_cli.stack import ports
from ferret_cli.stack.child import Child
from ferret_cli.stack.home_lock import LOCK_FILE, locked
from ferret_cli.stack.stack import Plan, Stack, participant_process, running
from ferret_core import sample
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.sample import tasks
from ferret_core.system.untrusted_files import USERS_DATA
from ferret_sdk.http.retry import AWAY
from ferret_sdk.service.measured_rounds import measured
from ferret_sdk.service.run import Run
from ferret_sdk.service.service import Service

DEFAULT_HOME = Path(".ferret/demo")
# Settings that would lead the demo out of its own folder, into an installation in use.
ELSEWHERE = ("DATABASE_URL", "DATABASE_URL_FILE", "BROKER_URL", "BROKER_URL_FILE", "STORAGE_URL")


def plan_of_demo(home: Path | None, port: int | None) -> Plan:
    """Returns the stack of the demo, in a ``home`` to keep or else in the default one, emptied."""
    own_environment()
    folder = (home or DEFAULT_HOME).expanduser().resolve()
    if home is None:
        fresh_home(folder)
    return Plan(folder, port=port or ports.this_or_free(DEFAULT_PORT))


def own_environment() -> None:
    """Restricts the demo's processes to its own folder, and keeps its participant from idling between short rounds.
    That one participant is the user's own, so its rounds may be downloaded.
    """
    for name in ELSEWHERE:
        os.environ.pop(f"FERRET_{name}", None)
    os.environ.setdefault("FERRET_EXPECTED_PARTICIPANTS", "1")
    os.environ.setdefault("FERRET_MIN_PARTICIPANTS", "1")


def fresh_home(home: Path) -> None:
    """Empties the folder of the last demo, unless that one still runs (``home.in_use``)."""
    with locked(home):
        for path in home.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK_FILE:
                path.unlink()


def write_data(home: Path) -> Path:
    """Returns the folder of the generated tasks: train, test and, for the real participant, edge."""
    folder = home / USERS_DATA
    folder.mkdir(parents=True, exist_ok=True)
    tasks.write(folder)
    return folder


def experiment_spec(data: Path) -> ExperimentSpec:
    """Returns the demo's experiment, shipped with its model."""
    os.environ["FERRET_DEMO_MODEL"] = str(sample.model_path())
    os.environ["FERRET_DEMO_DATA"] = str(data)
    return spec_input.load(Path(str(files(sample) / "demo.toml")))


PARTICIPANT = "edge-1"
STEP_SECONDS = 0.3


def show(plan: Plan, *, once: bool, json: bool) -> None:
    """Runs the experiment on a separate stack; then ends with ``once``, else serves until it is interrupted."""
    started = time.monotonic()
    with running(plan, say) as stack:
        _greet(stack, json)
        data = write_data(plan.home)
        run = _play(stack, experiment_spec(data), data)
        result = document(run, _checkpoint(run, plan.home), time.monotonic() - started)
        say(summary(result))
        if json:
            emit(result)
        require_completed(run)
        if not once:
            say("still serving; Ctrl-C stops it")
            stack.keep_running()


def _greet(stack: Stack, json: bool) -> None:
    """Prints the one address; with ``--json`` stdout is reserved for the document."""
    if json:
        say(stack.sign_in_address())
    else:
        print(stack.sign_in_address(), flush=True)
    say(f"in another terminal: export FERRET_HOME='{stack.plan.home}'; ferret experiment list")


def _checkpoint(run: Run, home: Path) -> Path | None:
    if run.state is not ExperimentState.COMPLETED:
        return None
    return run.export(home / "checkpoints" / run.id)


def _play(stack: Stack, spec: ExperimentSpec, data: Path) -> Run:
    service = Service(stack.plan.url, stack.token)
    run = service.submit(spec)
    say(f"submitted {run.id}: {spec.rounds} rounds, {spec.participants.simulated} simulated clients and {PARTICIPANT}")
    stack.supervisor.start(_participant(stack, run.create_code().code, data / "edge.jsonl"))
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
    """Prints the events after number ``told`` and returns the last number printed."""
    for event in run.past_events(told):
        if (number := measured(run, event)) is not None:
            say(str(line_of(run, number)))
        told = event.seq
        if event.final:
            run.refresh()
    return told


def _participant(stack: Stack, code: str, examples: Path) -> Child:
    """Runs ``ferret join`` as a user would; the code is passed in the environment, which other users cannot see."""
    home = stack.plan.home
    arguments = [stack.plan.url, "--data", str(examples), "--name", PARTICIPANT, "--yes"]
    environment = {"FERRET_CODE": code, "FERRET_HOME": str(home / PARTICIPANT), "OMP_NUM_THREADS": "1"}
    return participant_process(home, PARTICIPANT, arguments, environment)


def document(run: Run, checkpoint: Path | None, seconds: float) -> dict[str, Any]:
    """Returns the result: ``bytes_up`` and ``bytes_down`` per participant and round, ``rouge_l`` in percent."""
    experiment = run.experiment
    rounds = list(run.rounds())
    return {
        "id": experiment.id,
        "state": experiment.state.value,
        "rounds": experiment.round,
        "eval_loss": _first_and_last(run, "eval_loss"),
        "rouge_l": _first_and_last(run, "rouge_l"),
        "bytes_up": _mean(experiment.bytes_up, sum(round.accepted for round in rounds)),
        "bytes_down": _mean(experiment.bytes_down, sum(round.participants for round in rounds)),
        "seconds": round(seconds, 1),
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "digest": experiment.digest,
    }


def summary(result: dict[str, Any]) -> str:
    """Returns the document as one sentence."""
    loss, rouge = result["eval_loss"], result["rouge_l"]
    if loss["last"] is None or rouge["last"] is None:
        return f"{result['id']} is {result['state']} after {result['seconds']} s"
    return (
        f"{result['rounds']} rounds in {result['seconds']} s: evaluation loss {loss['first']:.3f} → {loss['last']:.3f},"
        f" Rouge-L {rouge['first']:.1f} % → {rouge['last']:.1f} %, {result['bytes_up']} bytes per upload;"
        f" the model is in {result['checkpoint']}; ask it: ferret chat {result['checkpoint']}"
    )


def _first_and_last(run: Run, name: str) -> dict[str, float | None]:
    found = run.experiment.metrics.get(name)
    return {"first": found.first if found else None, "last": found.last if found else None}


def _mean(total: int, count: int) -> int:
    return round(total / count) if count else 0
