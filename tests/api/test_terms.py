"""What contributions are checked against is parsed once for each version of an experiment."""

from __future__ import annotations

from collections.abc import Callable

from ferret_api.participants import contribution_requirements
from ferret_core.protocol.spec import ExperimentSpec
from ferret_db.tables import Experiment


def test_a_version_is_parsed_once_and_the_next_one_anew(toy_spec: Callable[..., ExperimentSpec]) -> None:
    spec = toy_spec(algorithm={"name": "fedavg"})
    chosen = {"name": "terms", "algorithm": "fedavg", "dataset": "jsonl", "rounds": 1, "participants": 1}
    row = Experiment(**chosen, spec=spec.model_dump(), seed_group="")
    row.id, row.version, row.shapes = "exp_terms", 1, {"b": [2], "a": [3, 4]}
    first = contribution_requirements.of(row)
    assert first.experiment.spec == spec
    assert list(first.shapes.items()) == [("a", (3, 4)), ("b", (2,))], "in canonical order"
    assert first.size.arrays == 14 * 4
    row.shapes = {"a": [5]}
    assert contribution_requirements.of(row) is first
    row.version = 2
    assert contribution_requirements.of(row).size.arrays == 5 * 4
