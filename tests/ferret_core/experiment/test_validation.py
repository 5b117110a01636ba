"""A specification while it is written: everything that is wrong with it at once."""

from __future__ import annotations

from typing import Any

from ferret_core import catalog
from ferret_core.experiment.validation import minimal_document, validate
from tests.ferret_core.replicas import SpecFactory


def wrong(document: dict[str, Any]) -> dict[str, str]:
    problem = validate(document).problem
    assert problem is not None
    assert problem.code == "spec.invalid"
    return {error.field: error.message for error in problem.errors}


def test_an_empty_one_lacks_what_has_no_default() -> None:
    assert wrong({}) == dict.fromkeys(["name", "model", "dataset", "participants"], "is required")


def test_a_misspelled_algorithm_or_dataset_is_answered_with_the_right_name() -> None:
    told = wrong({"algorithm": {"name": "feret"}, "dataset": {"name": "doly"}})
    assert (told["algorithm.name"], told["dataset.name"]) == (
        "is unknown; did you mean ferret?",
        "is unknown; did you mean dolly?",
    )


def test_options_are_told_of_before_the_rest_is_complete() -> None:
    told = wrong({"rouns": 3, "algorithm": {"name": "ferret", "Kk": 5}, "partition": {"name": "di"}})
    assert told["rouns"] == "is unknown; did you mean rounds?"
    assert told["algorithm.Kk"] == "is unknown; did you mean K?"
    assert "is unknown; choose from dirichlet, iid" in told["partition.name"]
    assert told["name"] == "is required"


def test_values_of_a_wrong_kind_or_size_are_told_in_plain_words() -> None:
    told = wrong({"rounds": "many", "seed": 1.5, "name": "n" * 121, "participants": {"simulated": 1, "fraction": 2}})
    assert (told["rounds"], told["seed"]) == ("must be an integer", "must be an integer")
    assert told["name"] == "must have at most 120 characters"
    assert told["participants.fraction"] == "must be at most 1"
    dtype = wrong({"model": {"source": "/m", "dtype": "int4"}})["model.dtype"]
    assert dtype.startswith("must be 'float32'")


def test_sections_that_are_right_are_filled_in() -> None:
    local = {"optimizer": "adam", "epochs": 2}
    draft = validate({"rounds": 0, "algorithm": {"name": "fedavg", "local": local}, "server": {"momentum": 2}})
    assert draft.experiment is None
    assert draft.filled["algorithm"]["local"]["steps"] is None
    assert draft.filled["evaluation"]["examples"] == 256
    assert not {"server", "model", "name"} & draft.filled.keys()


def test_a_right_one_is_resolved(toy_spec: SpecFactory) -> None:
    spec = toy_spec()
    draft = validate(spec.model_dump(mode="json"))
    assert draft.problem is None
    assert draft.experiment == catalog.resolve(spec)
    assert draft.filled == draft.experiment.spec.model_dump(mode="json")


def test_what_has_to_be_said_is_what_was_said(toy_spec: SpecFactory) -> None:
    plain = {**toy_spec().model_dump(mode="json", include={"name", "model", "dataset"}), "participants": {"edge": 2}}
    for algorithm in (
        {"name": "ferret"},
        {"name": "ferret_paper", "basis": "G", "local": {"learning_rate": 0.5}},
        {"name": "ferret", "local": {"optimizer": "adam", "learning_rate": 0.1, "epochs": 2}},
        {"name": "fedavg", "local": {"optimizer": "normalized", "learning_rate": 0.1}},
    ):
        whole = validate({**plain, "algorithm": algorithm, "rounds": 12, "round": {"quorum": 0.5}}).filled
        said = minimal_document(whole)
        assert validate(said).filled == whole
        assert said["participants"] == {"edge": 2}
        assert not {"server", "round", "robust", "rounds"} & said.keys()
    assert minimal_document(whole)["algorithm"] == {"name": "fedavg", "local": {"optimizer": "normalized"}}
