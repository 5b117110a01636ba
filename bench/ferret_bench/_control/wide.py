"""One round of many participants: the time of its transactions, without workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from ferret_bench._control import databases
from ferret_core.contribution import SealedContribution
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ParticipantKind, RoundState
from ferret_core.protocol.wire import FORMAT_VERSION, Contribution, ContributionMeta
from ferret_core.rounds.cost import LocalCost
from ferret_core.rounds.sampling import client_names, round_tasks
from ferret_db import migrate
from ferret_db.database import Database
from ferret_db.engine import assignments, lifecycle, rounds
from ferret_db.engine.acceptance import ContributionOffer, accept
from ferret_db.repositories import assignments as assignment_rows
from ferret_db.repositories import rounds as round_rows
from ferret_db.tables import Assignment, Experiment

R = TypeVar("R")
LEASE_SECONDS = 3600.0
BASE = digest_bytes(b"no model is needed here")


def measure(name: str, folder: Path, participants: int) -> dict[str, Any]:
    """Returns milliseconds to open the round, to lease and to accept an assignment, and to freeze with the last one."""
    folder.mkdir(parents=True, exist_ok=True)
    with databases.empty(name, folder) as url:
        migrate.upgrade(url)
        database = Database(url)
        try:
            return _measure(database, participants)
        finally:
            database.dispose()


def _measure(database: Database, participants: int) -> dict[str, Any]:
    experiment = _started(database, participants)
    opening, round_id = _timed(lambda: _open(database, experiment, participants))
    with database.read() as s:
        waiting = assignment_rows.of_round(s, round_id)
    leasing, accepting = list[float](), list[float]()
    for assignment in waiting:
        seconds, leased = _timed(lambda assignment=assignment: _lease(database, assignment))
        leasing.append(seconds)
        seconds, _ = _timed(lambda leased=leased: _accept(database, leased))
        accepting.append(seconds)
    with database.read() as s:
        assert round_rows.get(s, round_id).state == RoundState.FROZEN
    *accepting, freezing = accepting
    return {
        "assignments": participants,
        "open_ms": 1000 * opening,
        "lease_ms": _ends(leasing),
        "accept_ms": _ends(accepting),
        "freeze_ms": 1000 * freezing,
    }


def _started(database: Database, participants: int) -> Experiment:
    """Creates a running experiment with that many simulated participants. Its model does not exist."""
    spec = ExperimentSpec.model_validate(
        {
            "name": "a wide round",
            "model": {"source": "none"},
            "dataset": {"name": "jsonl", "train": "none"},
            "participants": {"simulated": participants},
        }
    )
    with database.begin() as s:
        queued, _ = lifecycle.submit(s, spec)
        return lifecycle.start(s, queued.id, BASE, {}, [])


def _open(database: Database, experiment: Experiment, participants: int) -> str:
    spec = ExperimentSpec.model_validate(experiment.spec)
    tasks = round_tasks(spec, experiment.id, 1, client_names(participants), BASE)
    with database.begin() as s:
        everybody = [(task, ParticipantKind.SIMULATED, None) for task in tasks]
        return rounds.open_round(s, experiment.id, 1, everybody, LEASE_SECONDS, bytes_down_each=0).id


def _lease(database: Database, assignment: Assignment) -> Assignment:
    with database.begin() as s:
        leased = assignments.lease(s, assignment.id, LEASE_SECONDS)
    assert leased is not None
    return leased


def _accept(database: Database, leased: Assignment) -> None:
    task = leased.task
    of_task = {field: task[field] for field in ("experiment", "round", "participant", "base_digest")}
    told = {"format": FORMAT_VERSION, "algorithm": "ferret", "examples": 1, "metrics": {}}
    meta = ContributionMeta.model_validate({**of_task, **told})
    blob = leased.participant.encode()
    sealed = SealedContribution((blob,), digest_bytes(blob), Contribution(meta, {}))
    with database.begin() as s:
        accept(s, ContributionOffer(leased.id, leased.fence, sealed, LocalCost(1.0)))


def _timed(act: Callable[[], R]) -> tuple[float, R]:
    begin = perf_counter()
    result = act()
    return perf_counter() - begin, result


def _ends(seconds: list[float]) -> dict[str, float]:
    """Returns the medians of the first and of the last tenth: equal if the cost is independent of earlier ones."""
    tenth = max(1, len(seconds) // 10)
    ordered = sorted(seconds[:tenth]), sorted(seconds[-tenth:])
    first, last = (1000 * part[len(part) // 2] for part in ordered)
    return {"first": first, "last": last}
