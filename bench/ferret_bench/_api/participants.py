"""Enrolled participants of several running experiments, written into the database as enrolment would, and fake workers:
they commit frozen rounds and open the next ones while the API is under load.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import insert

from ferret_bench.measure.background import repeated
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ParticipantKind, RoundState
from ferret_core.rounds import sampling
from ferret_db.database import Database
from ferret_db.engine import lifecycle, rounds
from ferret_db.repositories import experiments
from ferret_db.repositories import rounds as round_rows
from ferret_db.tables import Participant, new_id

WEIGHTS = 2048
"""Weights of the model: a contribution of FedAvg has 8 kB."""
SHAPES = {"weight": (WEIGHTS,)}
ROUNDS = 10_000


class Member(NamedTuple):
    """A participant as the load knows it."""

    id: str
    name: str
    token: str


class Cohort(NamedTuple):
    """One experiment: its ``workers`` are drawn for every round, the others only poll."""

    experiment: str
    workers: list[Member]
    others: list[Member]


def base_digest(number: int) -> str:
    """Returns the digest of the model that round ``number`` starts from."""
    return digest_bytes(f"model before round {number}".encode())


def enrol(database: Database, experiments: int, participants: int) -> list[Cohort]:
    """Enrols ``participants``, distributed equally over ``experiments``. Half of them are drawn for a round."""
    return [_cohort(database, participants // experiments) for _ in range(experiments)]


def _cohort(database: Database, size: int) -> Cohort:
    with database.begin() as s:
        experiment = lifecycle.submit(s, _spec(size))[0]
        lifecycle.start(s, experiment.id, base_digest(1), SHAPES, [])
        members = [Member(new_id("par"), f"site-{n:05}", secrets.token_urlsafe(32)) for n in range(size)]
        rows = [
            {
                "id": id_,
                "experiment_id": experiment.id,
                "name": name,
                "display_name": name,
                "token_hash": digest_bytes(token.encode()),
            }
            for id_, name, token in members
        ]
        s.execute(insert(Participant), rows)
    return Cohort(experiment.id, members[::2], members[1::2])


def _spec(size: int) -> ExperimentSpec:
    return ExperimentSpec.model_validate(
        {
            "name": "many participants",
            "rounds": ROUNDS,
            "model": {"source": "/nowhere"},
            "dataset": {"name": "jsonl", "train": "/nowhere", "test": "/nowhere"},
            "participants": {"edge": size, "simulated": 0},
            "algorithm": {"name": "fedavg"},
            "evaluation": {"every": ROUNDS},
        }
    )


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
