from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ferret_core import catalog
from ferret_core.experiment.spec_patch import revise
from ferret_core.protocol.spec import ExperimentSpec
from tests.algorithms import NAMES
from tests.refusals import refused

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.toml"))
DIGEST = "5f" * 32
FERRET = {"name": "ferret", "K": 64, "local": {"learning_rate": 0.5, "batch_size": 2, "optimizer": "sgd"}}


def document(**changes: Any) -> dict[str, Any]:
    return {
        "name": "toy",
        "model": {"source": "here", "revision": "abc", "dtype": "bfloat16"},
        "dataset": {"name": "jsonl", "train": "train.jsonl", "test": None},
        "participants": {"simulated": 2},
        "algorithm": FERRET,
        **changes,
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.heavy
def test_every_example_takes_every_algorithm(path: Path, name: str) -> None:
    tree = tomllib.loads(re.sub(r"\$\{(\w+)\}", "/somewhere", path.read_text()))
    tree.pop("tune", None)
    for stated in (tree, _stored(tree)):
        revised = revise(stated, {"algorithm": {"name": name}})
        spec = catalog.resolve(ExperimentSpec.model_validate(revised.document)).spec
        assert spec.algorithm.name == name
        same_algorithm = name == stated["algorithm"]["name"]
        own = {f"algorithm.{option}" for option in ("K", "bytes_per_round")}
        assert bool(own & revised.dropped.keys()) is not (same_algorithm or own.isdisjoint(_options(stated)))


def _options(tree: dict[str, Any]) -> set[str]:
    return {f"algorithm.{option}" for option, value in tree["algorithm"].items() if value is not None}


def _stored(tree: dict[str, Any]) -> dict[str, Any]:
    """As a server keeps it: every option filled in."""
    return catalog.resolve(ExperimentSpec.model_validate(tree)).spec.model_dump(mode="json")


@pytest.mark.parametrize(
    ("change", "left", "dropped"),
    [
        ({"name": "fedavg"}, {"name": "fedavg", "local": FERRET["local"]}, {"K": 64}),
        (
            {"name": "fedkseed", "K": 9},
            {"name": "fedkseed", "K": 9, "local": {"batch_size": 2}},
            {"local.learning_rate": 0.5, "local.optimizer": "sgd"},
        ),
        (
            {"name": "fedkseed", "local": {"learning_rate": 1e-6, "optimizer": None}},
            {"name": "fedkseed", "local": {"learning_rate": 1e-6, "batch_size": 2}},
            {"K": 64},
        ),
        ({"name": "fednew"}, {"name": "fednew"}, None),
        ({"local": {"optimizer": "adam"}}, FERRET | {"local": FERRET["local"] | {"optimizer": "adam"}}, {}),
    ],
    ids=["trains alike", "zeroth order", "what is set wins", "not known here", "rates that are alike"],
)
def test_what_suits_the_changed_algorithm_stays(
    change: dict[str, Any], left: dict[str, Any], dropped: dict[str, Any] | None
) -> None:
    revised = revise(document(), {"algorithm": change})
    assert revised.document["algorithm"] == left
    assert dropped is None or revised.dropped == {f"algorithm.{name}": value for name, value in dropped.items()}


@pytest.mark.parametrize(
    ("change", "part", "dropped"),
    [
        (
            {"dataset": {"name": "dolly", "path": "dolly.jsonl"}},
            {"name": "dolly", "path": "dolly.jsonl"},
            {"dataset.train": "train.jsonl"},
        ),
        (
            {"dataset": {"name": "jsonl", "test_limit": 5}},
            {"name": "jsonl", "train": "train.jsonl", "test": None, "test_limit": 5},
            {},
        ),
        ({"partition": {"name": "shards"}}, {"name": "shards"}, {"partition.alpha": 0.5}),
        ({"model": {"source": "there"}}, {"source": "there", "dtype": "bfloat16"}, {"model.revision": "abc"}),
        ({"model": {"source": "here"}}, {"source": "here", "revision": "abc", "dtype": "bfloat16"}, {}),
        ({"model": {"dtype": None}}, {"source": "here", "revision": "abc"}, {}),
        (
            {"model": {"revision": None, "digest": DIGEST}},
            {"source": "here", "dtype": "bfloat16", "digest": DIGEST},
            {},
        ),
    ],
)
def test_another_choice_brings_none_of_the_old_ones_options_along(change, part, dropped) -> None:
    revised = revise(document(partition={"name": "dirichlet", "alpha": 0.5}), change)
    (section,) = change
    assert revised.document[section] == part
    assert revised.dropped == dropped


def test_another_model_comes_without_the_digest_of_the_one_before() -> None:
    before = document(model={"source": "here", "digest": DIGEST})
    assert revise(before, {"model": {"source": "there"}}).dropped == {"model.digest": DIGEST}
    assert revise(before, {"model": {"source": "there", "digest": "0" * 64}}).document["model"]["digest"] == "0" * 64


@pytest.mark.parametrize(
    ("algorithm", "change", "left"),
    [
        ({"name": "ferret", "bytes_per_round": 8192}, {"K": 9}, {"K": 9}),
        ({"name": "ferret", "K": 9}, {"bytes_per_round": 99}, {"bytes_per_round": 99}),
        ({"name": "fetchsgd", "columns": 9}, {"bytes_per_round": 99}, {"bytes_per_round": 99}),
        ({"name": "topk", "fraction": 0.5}, {"K": 9}, {"K": 9}),
        ({"name": "fedavg", "local": {"steps": 5}}, {"local": {"epochs": 1.0}}, {"local": {"epochs": 1.0}}),
        ({"name": "fedavg", "local": {"epochs": 2.0}}, {"local": {"steps": 3}}, {"local": {"steps": 3}}),
    ],
)
def test_an_option_takes_the_place_of_one_that_it_excludes(algorithm, change, left) -> None:
    for before in (document(algorithm=algorithm), _stored(document(algorithm=algorithm))):
        revised = revise(before, {"algorithm": change})
        options = revised.document["algorithm"]
        assert all(options[name] == value or value.items() <= options[name].items() for name, value in left.items())
        assert len(revised.dropped) == 1
        assert catalog.resolve(ExperimentSpec.model_validate(revised.document)).spec.algorithm.name == algorithm["name"]


def test_what_excludes_each_other_in_one_change_is_left_to_the_validation() -> None:
    revised = revise(document(), {"algorithm": {"K": 9, "bytes_per_round": 99}})
    with refused("spec.invalid", "exclude each other"):
        catalog.resolve(ExperimentSpec.model_validate(revised.document))


@pytest.mark.parametrize(
    "patch",
    [None, 3, {"algorithm": "fedavg"}, {"algorithm": {"name": ["x"]}}, {"model": {"source": 1}}],
)
def test_a_change_of_no_sense_is_left_to_the_validation(patch) -> None:
    revised = revise(document(), patch)
    with pytest.raises(ValueError, match=r"model|algorithm|valid"):
        ExperimentSpec.model_validate(revised.document)


def test_neither_document_nor_patch_is_touched() -> None:
    before, patch = document(), {"algorithm": {"name": "fedavg"}}
    revise(before, patch)
    assert (before, patch) == (document(), {"algorithm": {"name": "fedavg"}})


@pytest.mark.parametrize(("before", "after"), [("adam", "normalized"), ("normalized", "sgd"), (None, "adam")])
def test_a_rate_is_no_length_and_a_length_no_rate(before: str | None, after: str) -> None:
    local = {"learning_rate": 0.5, "schedule": "linear", "steps": 3} | ({"optimizer": before} if before else {})
    stated = document(algorithm={"name": "ferret", "local": local})
    revised = revise(stated, {"algorithm": {"local": {"optimizer": after}}})
    assert revised.document["algorithm"]["local"] == {"optimizer": after, "steps": 3}
    assert revised.dropped == {"algorithm.local.learning_rate": 0.5, "algorithm.local.schedule": "linear"}
    given = revise(stated, {"algorithm": {"local": {"optimizer": after, "learning_rate": 0.1}}})
    assert given.document["algorithm"]["local"]["learning_rate"] == 0.1


def test_an_algorithm_that_is_not_named_is_the_default() -> None:
    unnamed = document(algorithm={"basis": "H", "local": {"optimizer": "adam"}})
    named = revise(unnamed, {"algorithm": {"name": "ferret", "K": 9}})
    assert named.document["algorithm"] == {"name": "ferret", "basis": "H", "K": 9, "local": {"optimizer": "adam"}}
    assert named.dropped == {}
    back = revise(named.document, {"algorithm": {"name": None}})
    assert back.document["algorithm"] == {"basis": "H", "K": 9, "local": {"optimizer": "adam"}}
