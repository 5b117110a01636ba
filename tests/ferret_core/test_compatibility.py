"""What does not go together is refused before anything is loaded, with the field to change."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core import catalog, compatibility
from ferret_core.catalog import ResolvedExperiment
from ferret_core.compatibility import FILES, OWN_TRAINING, PRIVACY_BUDGET, RULES, SIMULATION, TEAM
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

IN_BACKWARD = {"optimizer": "sgd", "optimizer_in_backward": True, "accumulation": 1}
PURE = IN_BACKWARD | {"precision": "pure_bfloat16"}


def fields(experiment: ResolvedExperiment, rules: Any) -> list[str]:
    return [problem.field for problem in compatibility.problems(experiment, rules)]


@pytest.mark.parametrize(
    ("algorithm", "options", "changes", "field", "said"),
    [
        ("topk", {}, {"robust": {"rule": "median"}}, "robust.rule", "topk"),
        ("ferret", {}, {"robust": {"rule": "trimmed_mean"}}, "robust.rule", "algorithm.seeds = 'shared'"),
        ("fed_sb", {"coordinates": "sign"}, {"robust": {"rule": "median"}}, "robust.rule", "fed_sb"),
        ("fedavg", {}, {"robust": {"rule": "median"}, "server": {"weights": "examples"}}, "server.weights", "'equal'"),
        (
            "fedavg",
            {},
            {"stopping": {"metric": "rouge_l", "patience": 2}, "evaluation": {"generate_examples": 0}},
            "stopping.metric",
            "evaluation.generate_examples",
        ),
        ("fedavg", {}, {"server": {"average": "tail", "average_from": 9}}, "server.average_from", "3 rounds"),
        ("fedavg", {}, {"server": {"average_from": 9}}, "server.average_from", "3 rounds"),
        ("fedavg", {}, {"server": {"average_from": 2}}, "server.average_from", "'tail'"),
        ("fedit", {"local": PURE}, {}, "algorithm.local.precision", "'bfloat16'"),
        ("fedavg", {"local": PURE}, {}, "algorithm.local.precision", "model.dtype"),
    ],
)
def test_what_does_not_go_together_in_a_specification_is_refused(
    toy_spec: SpecFactory, algorithm: str, options: dict[str, Any], changes: dict[str, Any], field: str, said: str
) -> None:
    with refused("spec.invalid", said) as caught:
        catalog.resolve(toy_spec(algorithm, options=options, **changes))
    assert [error.field for error in caught.value.errors] == [field]


def test_all_that_does_not_go_together_is_told_at_once(toy_spec: SpecFactory) -> None:
    spec = toy_spec("topk", robust={"rule": "median"}, server={"weights": "examples", "average_from": 2})
    with refused("spec.invalid") as caught:
        catalog.resolve(spec)
    assert [error.field for error in caught.value.errors] == ["robust.rule", "server.weights", "server.average_from"]


def test_real_participants_are_not_simulated(toy_spec: SpecFactory) -> None:
    assert fields(catalog.resolve(toy_spec(participants={"edge": 1})), SIMULATION) == ["participants.edge"]


@pytest.mark.parametrize("algorithm", ["ferret", "fedavg", "diloco"])
def test_what_moves_the_model_by_plain_steps_fits_a_team(toy_spec: SpecFactory, algorithm: str) -> None:
    compatibility.require(catalog.resolve(toy_spec(algorithm)), TEAM, "request.invalid")


@pytest.mark.parametrize(
    ("algorithm", "options", "changes", "field"),
    [
        ("fedit", {}, {}, "algorithm.name"),
        ("fed_sb", {}, {}, "algorithm.name"),
        ("scaffold", {}, {}, "algorithm.name"),
        ("ferret", {"allocation": "curvature"}, {}, "algorithm.allocation"),
        ("fedavg", {"local": IN_BACKWARD}, {}, "algorithm.local.optimizer_in_backward"),
        ("fedavg", {}, {"server": {"momentum": 0.9}}, "server.momentum"),
        ("fedavg", {}, {"server": {"optimizer": "adam"}}, "server.optimizer"),
        ("fedavg", {}, {"robust": {"rule": "cosine_filter"}}, "robust.rule"),
    ],
)
def test_what_needs_the_whole_model_is_refused_by_a_team(
    toy_spec: SpecFactory, algorithm: str, options: dict[str, Any], changes: dict[str, Any], field: str
) -> None:
    experiment = catalog.resolve(toy_spec(algorithm, options=options, **changes))
    with refused("request.invalid", "one process") as caught:
        compatibility.require(experiment, TEAM, "request.invalid")
    assert [error.field for error in caught.value.errors] == [field]


def test_a_team_refuses_half_precision(toy_spec: SpecFactory, tiny_model_dir: Any) -> None:
    experiment = catalog.resolve(toy_spec(model={"source": str(tiny_model_dir), "dtype": "bfloat16"}))
    with refused("request.invalid", "model.dtype = 'bfloat16'", "32"):
        compatibility.require(experiment, TEAM, "request.invalid")


@pytest.mark.parametrize(
    ("algorithm", "changes", "field"),
    [
        ("fedit", {}, "algorithm.name"),
        ("fedavg", {"server": {"momentum": 0.9}}, "server.momentum"),
        ("fedavg", {"server": {"optimizer": "adam"}}, "server.optimizer"),
        ("fedavg", {"server": {"average": "tail"}}, "server.average"),
        ("fedavg", {"robust": {"rule": "cosine_filter"}}, "robust.rule"),
    ],
)
def test_what_needs_more_than_the_weights_keeps_them_in_memory(
    toy_spec: SpecFactory, algorithm: str, changes: dict[str, Any], field: str
) -> None:
    assert fields(catalog.resolve(toy_spec(algorithm)), FILES) == (["algorithm.name"] if algorithm == "fedit" else [])
    assert fields(catalog.resolve(toy_spec(algorithm, **changes)), FILES) == [field]


@pytest.mark.parametrize(
    ("algorithm", "options", "reason"),
    [
        ("ferret", {}, None),
        ("fedit", {}, None),
        ("fedkseed", {"local": {"steps": 1}}, "its own random directions"),
        ("ferret", {"allocation": "curvature"}, "gradient of every local step"),
        ("scaffold", {}, "changes every local step"),
    ],
)
def test_a_site_trains_by_itself_where_the_algorithm_does_not_have_to(
    toy_spec: SpecFactory, algorithm: str, options: dict[str, Any], reason: str | None
) -> None:
    spec = toy_spec(algorithm, options=options)
    found = compatibility.problems(ResolvedExperiment.of(spec), OWN_TRAINING)
    assert [reason in problem.message for problem in found if reason] == ([] if reason is None else [True])
    assert bool(found) is (reason is not None)


@pytest.mark.parametrize(("allocation", "told"), [("norm", True), ("optimal", True), ("uniform", False)])
def test_a_privacy_budget_refuses_an_allocation_that_follows_the_update(
    toy_spec: SpecFactory, allocation: str, told: bool
) -> None:
    experiment = catalog.resolve(toy_spec("ferret", options={"allocation": allocation}))
    assert fields(experiment, PRIVACY_BUDGET) == (["algorithm.allocation"] if told else [])


def test_a_privacy_budget_refuses_the_models_own_template(toy_spec: SpecFactory) -> None:
    experiment = catalog.resolve(toy_spec("fedavg", prompt={"template": "chat"}))
    with refused("terms.refused", "paper, alpaca or dolly"):
        compatibility.require(experiment, PRIVACY_BUDGET, "terms.refused")


def test_what_is_refused_is_told_with_its_value(toy_spec: SpecFactory) -> None:
    experiment = catalog.resolve(toy_spec("fedavg", options={"local": IN_BACKWARD}, server={"momentum": 0.5}))
    found = [(problem.field, problem.value) for problem in compatibility.problems(experiment, TEAM)]
    assert found == [("algorithm.local.optimizer_in_backward", True), ("server.momentum", 0.5)]
    assert compatibility.problems(experiment, RULES) == []
