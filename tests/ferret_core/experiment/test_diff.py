"""What differs between two specifications, and the shortest change that leads from one to the other."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core import catalog, discovery
from ferret_core.experiment.diff import Difference, compute_patch, differences
from ferret_core.experiment.spec_patch import revise
from ferret_core.protocol.spec import ExperimentSpec


def resolved(**changes: Any) -> dict[str, Any]:
    document = {
        "name": "toy",
        "model": {"source": "/here", "revision": "abc"},
        "dataset": {"name": "jsonl", "train": "train.jsonl"},
        "participants": {"simulated": 2},
        "algorithm": {"name": "ferret", "K": 64, "local": {"optimizer": "adam", "learning_rate": 0.5}},
        **changes,
    }
    return catalog.resolve(ExperimentSpec.model_validate(document)).spec.model_dump(mode="json")


ADAM = {"optimizer": "adam", "learning_rate": 0.5}
WANTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "another algorithm": (
        {"algorithm": {"name": "fedavg", "local": ADAM}},
        {"algorithm": {"name": "fedavg"}},
    ),
    "an option instead of another": (
        {"algorithm": {"name": "ferret", "bytes_per_round": 4096, "local": ADAM}},
        {"algorithm": {"K": None, "bytes_per_round": 4096, "coordinates": "auto"}},
    ),
    "another optimizer at the same rate": (
        {"algorithm": {"name": "ferret", "K": 64, "local": {"optimizer": "normalized", "learning_rate": 0.5}}},
        {"algorithm": {"local": {"optimizer": "normalized", "learning_rate": 0.5}}},
    ),
    "another dataset": (
        {"dataset": {"name": "gsm8k", "train": "a", "test": "b"}},
        {"dataset": {"name": "gsm8k", "train": "a", "test": "b"}},
    ),
    "another model": ({"model": {"source": "/there"}}, {"model": {"source": "/there"}}),
    "something unset and something set": (
        {"seed": 3, "model": {"source": "/here"}, "round": {"deadline_seconds": 60}},
        {"seed": 3, "model": {"revision": None}, "round": {"deadline_seconds": 60}},
    ),
}


@pytest.mark.parametrize("name", WANTED)
def test_the_change_is_as_short_as_people_would_write_it(name: str) -> None:
    changes, expected = WANTED[name]
    assert compute_patch(resolved(), resolved(**changes)) == expected


@pytest.mark.parametrize("first", ["ferret", "fedkseed", "fedit"])
@pytest.mark.parametrize("second", discovery.names("ferret_core.algorithms"))
@pytest.mark.heavy
def test_the_change_leads_from_any_algorithm_to_any(first: str, second: str) -> None:
    before = resolved(algorithm={"name": first}, seed=5)
    after = resolved(algorithm={"name": second, "local": {"batch_size": 3}})
    revised = revise(before, compute_patch(before, after)).document
    assert resolved(**revised) == after


def test_differences_are_told_by_dotted_names() -> None:
    before, after = {"a": {"b": 1, "c": None}, "d": [1]}, {"a": {"b": 2, "e": {}}, "d": [1]}
    assert differences(before, after) == [Difference("a.b", 1, 2), Difference("a.e", None, {})]
