"""A storm: all that runs is killed or stopped again and again, and the model must end as if nothing had happened.

``python -m tests.chaos.storm --seed 1 --kills 200 --rounds 60`` runs the real service (API, two training workers, two
aggregation workers, a broker, one real participant) on SQLite, then on PostgreSQL (the server at
``FERRET_TEST_POSTGRESQL``, in a database of its own). Its last line is one JSON document; it ends with 1 unless
everything in it holds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch
from sqlalchemy.engine import make_url

from ferret_bench._control import databases
from ferret_bench._control.workload import Workload
from ferret_cli.ledger_replay import verified_records
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.rounds.sampling import client_names
from ferret_core.simulate import simulate
from ferret_db.database import Database
from ferret_sdk.service.run import Run
from tests.chaos import checks, schedule
from tests.chaos.cluster import LEASE_SECONDS, Cluster, running, terminate_sessions
from tests.chaos.killer import Striker, TooLong
from tests.chaos.watch import Watch

os.environ.setdefault(databases.SETTING, "postgresql://postgres@127.0.0.1:5432/postgres")
EVERY = 5
"""Rounds between checkpoints."""


def main(arguments: list[str] | None = None) -> int:
    """The exit code."""
    asked = _arguments(arguments)
    torch.set_num_threads(1)
    home = asked.home or Path(tempfile.mkdtemp(prefix="ferret-storm-"))
    workload = Workload(home / "workload", asked.clients + 1)
    _say("the experiment undisturbed")
    digest = simulate(_spec(workload, asked.rounds, real=0)).digest
    found = {name: _storm(name, home / name, workload, digest, asked) for name in asked.databases}
    holds = all(item["holds"] for item in found.values())
    if holds and asked.home is None:
        shutil.rmtree(home)
    else:
        _say(f"the logs of all processes are under {home}")
    sys.stdout.write(json.dumps({"seed": asked.seed, "holds": holds, **found}) + "\n")
    return 0 if holds else 1


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.storm", description=about)
    parser.add_argument("--seed", type=int, default=1, help="decides who is killed when; default 1")
    parser.add_argument("--kills", type=int, default=200, help="on each database; default 200")
    parser.add_argument("--rounds", type=int, default=60, help="default 60")
    parser.add_argument("--clients", type=int, default=8, help="simulated ones, beside the real one; default 8")
    parser.add_argument("--databases", nargs="+", choices=databases.NAMES, default=databases.NAMES, help="default both")
    parser.add_argument("--max-seconds", type=float, default=1800, help="on each database; default 1800")
    parser.add_argument(
        "--leases", type=float, help="bound on recovery (99th percentile) in lease periods; default none"
    )
    parser.add_argument("--home", type=Path, help="folder to keep everything in; default a temporary one")
    return parser.parse_args(arguments)


def _storm(name: str, home: Path, workload: Workload, digest: str, asked: argparse.Namespace) -> dict[str, Any]:
    """One storm on one database: what was counted, and whether all of it is as it must be."""
    _say(f"{asked.kills} kills over {asked.rounds} rounds on {name}")
    begin = time.monotonic()
    with databases.empty(name, home) as url, running(home, url, _say) as cluster:
        run = cluster.service.submit(_spec(workload, asked.rounds, real=1))
        _join(cluster, run, workload)
        watch = Watch(Database(url), run.id)
        cut = partial(terminate_sessions, os.environ[databases.SETTING], make_url(url).database or "")
        striker = Striker(cluster, watch, cut, Random(asked.seed), begin + asked.max_seconds, _say)
        victims = schedule.VICTIMS | (schedule.SESSIONS if name == "postgresql" else {})
        try:
            striker.rage(schedule.draw(asked.seed, asked.kills, _events(asked), victims))
        except TooLong as late:
            return {"holds": False, "kills": len(striker.hits), "error": f"{late} after {asked.max_seconds:.0f} s"}
        counted = _counted(striker, cluster.service.experiment(run.id), asked)
    equal = counted.pop("digest") == digest
    found = counted | {"digest_equal": equal, "seconds": round(time.monotonic() - begin, 1)}
    return {"holds": _holds(found, asked), **found}


def _spec(workload: Workload, rounds: int, real: int) -> ExperimentSpec:
    evaluation = {"every": 1, "examples": 4, "generate_examples": 0}
    return workload.spec(rounds, real=real, evaluation=evaluation, checkpoint={"every": EVERY, "keep": 2})


def _join(cluster: Cluster, run: Run, workload: Workload) -> None:
    """The last owner takes part as a real participant, under the name it has where all are simulated."""
    _, (data,) = workload.deal_out(1)
    code = run.create_code().code
    cluster.join("edge", client_names(workload.owners)[-1], code, data)


def _events(asked: argparse.Namespace) -> range:
    """Numbers of events from the opening of round 1 to the last but one: those that every run has."""
    each = 1 + asked.clients + 1 + 3  # opened, accepted, frozen, committed, evaluated
    return range(6, 6 + each * (asked.rounds - 1))


def _counted(striker: Striker, run: Run, asked: argparse.Namespace) -> dict[str, Any]:
    watch, participants = striker.watch, client_names(asked.clients + 1)
    expected = {(number, participant) for number in range(1, asked.rounds + 1) for participant in participants}
    experiment = watch.experiment()
    return {
        "state": experiment.state.value,
        "digest": experiment.digest,
        "kills": len(striker.hits),
        "victims": Counter(hit.victim for hit in striker.hits),
        "at_work": sum(hit.at_work for hit in striker.hits),
        **watch.read(lambda s: checks.rounds(s, run.id, asked.rounds)),
        **watch.read(lambda s: checks.contributions(s, run.id, expected)),
        "ledger": _ledger(run),
        **checks.recovery(striker.hits, watch.moments()),
        **checks.replacements(striker.replaced),
    }


def _ledger(run: Run) -> str:
    """``holds``, or what is wrong."""
    try:
        list(verified_records(run))
    except FerretError as error:
        return error.detail
    return "holds"


def _holds(found: dict[str, Any], asked: argparse.Namespace) -> bool:
    must = {
        "state": ExperimentState.COMPLETED.value,
        "kills": asked.kills,
        "rounds": asked.rounds,
        "committed_once": True,
        "lost": 0,
        "doubled": 0,
        "ledger": "holds",
        "digest_equal": True,
    }
    in_time = asked.leases is None or found["recovery_p99_s"] <= asked.leases * LEASE_SECONDS
    return in_time and all(found[name] == value for name, value in must.items())


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
