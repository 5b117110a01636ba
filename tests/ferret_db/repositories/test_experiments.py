from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_db.database import Database
from ferret_db.repositories import experiments
from ferret_db.repositories.experiments import ExperimentFilter


def names(database: Database, **wanted: Any) -> list[str]:
    with database.read() as s:
        return [row.name for row in experiments.list_page(s, ExperimentFilter(**wanted), 10).items]


def test_filters(database: Database, lab: Any) -> None:
    lab.submit(name="Clinic A")
    lab.submit(name="clinic b", algorithm={"name": "fedavg"})
    lab.start(name="100% bank", dataset={"name": "jsonl"})
    assert names(database) == ["100% bank", "clinic b", "Clinic A"]
    assert names(database, name="CLINIC") == ["clinic b", "Clinic A"]
    assert names(database, name="0%") == ["100% bank"]
    assert names(database, name="_") == []
    assert names(database, algorithm="fedavg") == ["clinic b"]
    assert names(database, dataset="jsonl") == ["100% bank"]
    assert names(database, states=[ExperimentState.RUNNING, ExperimentState.FAILED]) == ["100% bank"]
    assert names(database, states=[ExperimentState.QUEUED], name="a") == ["Clinic A"]


def test_the_specification_comes_back_as_it_was(database: Database, lab: Any) -> None:
    spec = lab.spec(seed=2**63 - 1, algorithm={"name": "ferret", "learning_rate": 1e-7, "K": [1, 2]})
    experiment = lab.submit(seed=2**63 - 1, algorithm={"name": "ferret", "learning_rate": 1e-7, "K": [1, 2]})
    assert ExperimentSpec.model_validate(lab.get(experiment).spec) == spec


def test_unknown_experiments_are_not_found(database: Database) -> None:
    for find in (experiments.get, experiments.lock):
        with pytest.raises(FerretError, match="exp_none") as caught, database.begin() as s:
            find(s, "exp_none")
        assert caught.value.code == "experiment.not_found"
