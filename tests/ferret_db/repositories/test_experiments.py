from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_db.database import Database
from ferret_db.repositories import experiments
from tests.refusals import refused


@pytest.mark.about_database
def test_the_specification_comes_back_as_it_was(database: Database, lab: Any) -> None:
    spec = lab.spec(seed=2**63 - 1, algorithm={"name": "ferret", "learning_rate": 1e-7, "K": [1, 2]})
    experiment = lab.submit(seed=2**63 - 1, algorithm={"name": "ferret", "learning_rate": 1e-7, "K": [1, 2]})
    assert ExperimentSpec.model_validate(lab.get(experiment).spec) == spec


def test_unknown_experiments_are_not_found(database: Database) -> None:
    for find in (experiments.get, experiments.lock):
        with refused("experiment.not_found", "exp_none"), database.begin() as s:
            find(s, "exp_none")
