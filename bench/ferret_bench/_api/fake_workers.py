"""Fake workers: they commit frozen rounds and open the next ones while the API is under load."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from ferret_bench._api.participants import Cohort, base_digest
from ferret_bench.measure.background import repeated
from ferret_core.protocol.states import ParticipantKind, RoundState
from ferret_core.rounds import sampling
from ferret_db.database import Database
from ferret_db.engine import rounds
from ferret_db.repositories import experiments
from ferret_db.repositories import rounds as round_rows

LOOK_SECONDS = 0.25
DEADLINE_SECONDS = 3600


@contextmanager
def turning(database: Database, cohorts: Sequence[Cohort]) -> Generator[None]:
    """Opens every cohort's first round at the start of the block, and the next one whenever one is over."""
    for cohort in cohorts:
        _open(database, cohort, 1)

    def turn() -> None:
        for cohort in cohorts:
            _turn(database, cohort)

    with repeated(turn, LOOK_SECONDS):
        yield


def _turn(database: Database, cohort: Cohort) -> None:
    with database.read() as s:
        round_ = round_rows.latest(s, cohort.experiment)
    if round_ is None or round_.state != RoundState.FROZEN:
        return
    digest = base_digest(round_.number + 1)
    with database.begin() as s:
        rounds.commit_round(
            s,
            round_.id,
            digest=digest,
            record={"round": round_.number, "digest": digest, "clipped": [], "refused": []},
            record_hash=digest,
            update_digest=digest,
            update_size=0,
            artifacts=[],
            metrics={},
            inside={},
        )
    _open(database, cohort, round_.number + 1)


def _open(database: Database, cohort: Cohort, number: int) -> None:
    with database.begin() as s:
        spec = experiments.spec_of(experiments.get(s, cohort.experiment))
        ids = {worker.name: worker.id for worker in cohort.workers}
        tasks = sampling.round_tasks(spec, cohort.experiment, number, list(ids), base_digest(number))
        everybody = [(task, ParticipantKind.EDGE, ids[task.participant]) for task in tasks]
        rounds.open_round(s, cohort.experiment, number, everybody, DEADLINE_SECONDS, bytes_down_each=0)
