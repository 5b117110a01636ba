"""The demo's folder, data and experiment."""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from pathlib import Path

from ferret_cli import spec_input
from ferret_cli.options import DEFAULT_PORT
from ferret_cli.stack import ports
from ferret_cli.stack.home_lock import LOCK_FILE, locked
from ferret_cli.stack.stack import Plan
from ferret_core import sample
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.sample import tasks
from ferret_core.system.untrusted_files import USERS_DATA

DEFAULT_HOME = Path(".ferret/demo")
# Settings that would lead the demo out of its own folder, into an installation in use.
ELSEWHERE = (
    "DATABASE_URL",
    "DATABASE_URL_FILE",
    "BROKER_URL",
    "BROKER_URL_FILE",
    "STORAGE_URL",
)


def plan(home: Path | None, port: int | None) -> Plan:
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


def data(home: Path) -> Path:
    """Returns the folder of the generated tasks: train, test and, for the real participant, edge."""
    folder = home / USERS_DATA
    folder.mkdir(parents=True, exist_ok=True)
    tasks.write(folder)
    return folder


def spec(data: Path) -> ExperimentSpec:
    """Returns the demo's experiment, shipped with its model."""
    os.environ["FERRET_DEMO_MODEL"] = str(sample.model_path())
    os.environ["FERRET_DEMO_DATA"] = str(data)
    return spec_input.load(Path(str(files(sample) / "demo.toml")))
