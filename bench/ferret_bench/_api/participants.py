"""Enrolled participants of several running experiments, written into the database as enrolment would."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from sqlalchemy import insert

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.spec import ExperimentSpec
from ferret_db.database import Database
from ferret_db.engine import lifecycle
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
