from __future__ import annotations

from ferret_db.database import Database
from ferret_db.repositories import experiments
from tests.refusals import refused


def test_unknown_experiments_are_not_found(database: Database) -> None:
    for find in (experiments.get, experiments.lock):
        with refused("experiment.not_found", "exp_none"), database.begin() as s:
            find(s, "exp_none")
