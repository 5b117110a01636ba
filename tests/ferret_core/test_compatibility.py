"""What does not go together is refused before anything is loaded, with the field to change."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core import catalog, compatibility
from ferret_core.catalog import ResolvedExperiment
from ferret_core.compatibility import FILES, OWN_TRAINING, PRIVACY_BUDGET, RULES, SERVICE, SIMULATION, TEAM, problems
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

IN_BACKWARD = {"optimizer": "sgd", "optimizer_in_backward": True, "accumulation": 1}
PURE = IN_BACKWARD | {"precision": "pure_bfloat16"}
IN_BFLOAT16 = {"model": {"source": "./model", "dtype": "bfloat16"}}


def fields(experiment: ResolvedExperiment, rules: Any) -> list[str]:
    return [problem.field for problem in compatibility.problems(experiment, rules)]


@pytest.mark.parametrize(
    ("algorithm", "options", "changes", "field", "said"),
    [
        ("topk", {}, {"robust": {"rule": "median"}}, "robust.rule", "topk"),
        ("ferret", {}, {"robust": {"rule": "trimmed_mean"}}, "robust.rule", "algorithm.seeds = 'shared'"),
        ("scaffold", {}, {"robust": {"rule": "median"}}, "robust.rule", "scaffold"),
        ("fed_sb", {"coordinates": "sign"}, {"robust": {"rule": "median"}}, "robust.rule", "fed_sb"),
        *(
            (name, {}, {"robust": {"rule": "cosine_filter"}}, "robust.rule", "add updates up")
            for name in ("demo", "fetchsgd", "signsgd", "sparseloco")
        ),
        ("fetchsgd", {}, {"server": {"step_guard": True}}, "server.step_guard", "earlier rounds"),
        ("fedavg", {}, {"robust": {"rule": "median"}, "server": {"weights": "examples"}}, "server.weights", "'equal'"),
        (
            "fedavg",
            {},
            {"stopping": {"metric": "rouge_l", "patience": 2}, "evaluation": {"generate_examples": 0}},
            "stopping.metric",
            "evaluation.generate_examples",
        ),
        ("fedit", {"local": PURE}, {}, "algorithm.local.precision", "'bfloat16'"),
        ("fedavg", {"local": PURE}, {}, "algorithm.local.precision", "model.dtype"),
        ("scaffold", {"local": PURE}, IN_BFLOAT16, "algorithm.local.precision", "'bfloat16'"),
        ("fedavg", {}, {"model": {"source": "nope"}}, "model.revision", "a folder is written ./nope"),
    ],
)
def test_what_does_not_go_together_in_a_specification_is_refused(
    toy_spec: SpecFactory, algorithm: str, options: dict[str, Any], changes: dict[str, Any], field: str, said: str
) -> None:
    with refused("spec.invalid", said) as caught:
        catalog.resolve(toy_spec(algorithm, options=options, **changes))
    assert [error.field for error in caught.value.errors] == [field]


def test_the_mean_of_signs_can_be_compared_by_direction(toy_spec: SpecFactory) -> None:
    catalog.resolve(toy_spec("signsgd", options={"aggregation": "mean"}, robust={"rule": "cosine_filter"}))


@pytest.mark.parametrize("pinned", [{"revision": "v1"}, {"digest": "00" * 32}])
def test_a_model_on_the_hub_is_pinned_by_revision_or_digest(toy_spec: SpecFactory, pinned: dict[str, str]) -> None:
    catalog.resolve(toy_spec(model={"source": "org/model", **pinned}))


SUMMED = {"seeds": "shared", "allocation": "fixed", "K": 4_000}
MASKED = {"secure": {"aggregation": "masked"}}


@pytest.mark.parametrize(
    ("algorithm", "options", "changes", "fields"),
    [
        ("ferret", SUMMED, {}, []),
        ("ferret", SUMMED, {"participants": {"simulated": 640, "fraction": 0.1}}, []),
        *((name, {}, {}, []) for name in ("fedavg", "fedprox", "fedzo", "fedit", "fedprompt", "fedptuning")),
        *((name, {}, {}, ["algorithm.name"]) for name in ("topk", "scaffold", "signsgd", "fed_sb", "fedkseed")),
        ("fedavg", {}, {"server": {"weights": "examples"}}, ["server.weights"]),
        ("fedavg", {}, {"robust": {"rule": "median"}}, ["robust.rule"]),
        ("fedavg", {"local": {"epochs": 1.0}}, {}, []),
        ("ferret", {}, {}, ["algorithm.seeds", "algorithm.bytes_per_round"]),
        ("ferret", SUMMED | {"coordinates": "int8"}, {}, ["algorithm.coordinates"]),
        ("ferret", SUMMED | {"whole_up_to": 32}, {}, ["algorithm.whole_up_to"]),
        ("ferret", SUMMED | {"K": None, "bytes_per_round": 8192}, {}, ["algorithm.bytes_per_round"]),
        ("ferret", SUMMED | {"local": {"epochs": 1.0}}, {}, ["algorithm.local.epochs"]),
        ("ferret", SUMMED, {"server": {"weights": "examples"}}, ["server.weights"]),
        ("ferret", SUMMED, {"robust": {"rule": "median"}}, ["robust.rule"]),
        ("ferret", SUMMED, {"robust": {"rule": "cosine_filter"}}, ["robust.rule"]),
        ("ferret", SUMMED, {"round": {"over_selection": 0.5}}, ["round.over_selection"]),
        ("ferret", SUMMED, {"participants": {"simulated": 2}}, ["secure.least"]),
        ("ferret", SUMMED, {"participants": {"simulated": 65}}, ["secure.group"]),
    ],
)
def test_one_bit_coordinates_and_whole_updates_of_a_group_are_summed_under_masks(
    toy_spec: SpecFactory, algorithm: str, options: dict[str, Any], changes: dict[str, Any], fields: list[str]
) -> None:
    spec = toy_spec(algorithm, options=options, **MASKED, **changes)
    if not fields:
        catalog.resolve(spec)
        return
    with refused("spec.invalid", "mask") as caught:
        catalog.resolve(spec)
    assert [error.field for error in caught.value.errors] == fields


HIDDEN = SUMMED | {"coordinates": "float32", "local": {"optimizer": "normalized", "steps": 1, "accumulation": 1}}
RECORDS = {"privacy": {"unit": "example", "epsilon": 8.0, "batch": 10, "records_least": 100}, **MASKED}


@pytest.mark.parametrize(
    ("options", "changes", "fields"),
    [
        ({}, {}, []),
        ({}, {"secure": {}}, ["secure.aggregation"]),
        ({}, {"secure": MASKED["secure"] | {"group": 3}}, ["secure.group"]),
        ({"coordinates": "sign"}, {}, ["algorithm.coordinates"]),
        ({"K": None, "bytes_per_round": 8192}, {}, ["algorithm.bytes_per_round"]),
        ({"local": {"steps": 2, "accumulation": 1}}, {}, ["algorithm.local.steps"]),
        ({"local": {"steps": 1, "accumulation": 4}}, {}, ["algorithm.local.accumulation"]),
        ({"local": {"steps": 1, "accumulation": 1, "batch_size": 2}}, {}, ["algorithm.local.accumulation"]),
        ({"local": {"steps": 1, "accumulation": 1, "optimizer": "adam"}}, {}, ["algorithm.local.optimizer"]),
        ({"local": {"steps": 1, "accumulation": 1, "momentum": 0.5}}, {}, ["algorithm.local.momentum"]),
        (
            {"local": {"steps": 1, "accumulation": 1, "optimizer_in_backward": True}},
            {},
            ["algorithm.local.optimizer_in_backward"],
        ),
    ],
)
def test_records_are_protected_in_one_step_of_single_gradients(
    toy_spec: SpecFactory, options: dict[str, Any], changes: dict[str, Any], fields: list[str]
) -> None:
    spec = toy_spec(algorithm={"name": "ferret", **HIDDEN, **options}, **{**RECORDS, **changes})
    if not fields:
        catalog.resolve(spec)
        return
    with refused("spec.invalid") as caught:
        catalog.resolve(spec)
    assert [error.field for error in caught.value.errors] == fields


def test_noise_that_protects_records_is_for_coordinates(toy_spec: SpecFactory) -> None:
    with refused("spec.invalid", "whole updates") as caught:
        catalog.resolve(toy_spec("fedavg", **RECORDS))
    assert [error.field for error in caught.value.errors] == ["algorithm.name"]


def test_more_weights_than_a_mask_has_words_are_refused(toy_spec: SpecFactory) -> None:
    masked, plain = (catalog.resolve(toy_spec("fedavg", **changes)) for changes in (MASKED, {}))
    compatibility.require_maskable(masked, 2**36)
    compatibility.require_maskable(plain, 2**36 + 1)
    with refused("spec.invalid", "secure.aggregation", "68719476737"):
        compatibility.require_maskable(masked, 2**36 + 1)


CENTRAL = {"privacy": RECORDS["privacy"] | {"mechanism": "central"}}


@pytest.mark.parametrize(
    ("options", "changes", "fields"),
    [
        ({}, {}, []),
        ({}, MASKED, ["secure.aggregation"]),
        ({}, {"robust": {"rule": "median"}}, ["robust.rule"]),
        ({}, {"robust": {"rule": "cosine_filter"}}, ["robust.rule"]),
        ({}, {"round": {"over_selection": 0.5}}, ["round.over_selection"]),
        ({}, {"server": {"weights": "examples"}}, ["server.weights"]),
        ({"coordinates": "sign"}, {}, ["algorithm.coordinates"]),
        ({"seeds": "own"}, {}, ["algorithm.seeds"]),
        ({"K": None, "bytes_per_round": 8192}, {}, ["algorithm.bytes_per_round"]),
    ],
)
def test_a_server_that_adds_noise_uses_the_sum_alone(
    toy_spec: SpecFactory, options: dict[str, Any], changes: dict[str, Any], fields: list[str]
) -> None:
    spec = toy_spec(algorithm={"name": "ferret", **HIDDEN, **options}, **{**CENTRAL, **changes})
    if not fields:
        resolved = catalog.resolve(spec)
        assert [each.field for each in problems(resolved, SERVICE)] == ["participants.simulated"]
        return
    with refused("spec.invalid") as caught:
        catalog.resolve(spec)
    assert [error.field for error in caught.value.errors] == fields


def test_only_noise_for_records_has_a_mechanism(toy_spec: SpecFactory) -> None:
    with pytest.raises(ValueError, match="does not use mechanism"):
        toy_spec(privacy={"mechanism": "central"})


def test_all_that_does_not_go_together_is_told_at_once(toy_spec: SpecFactory) -> None:
    spec = toy_spec("topk", robust={"rule": "median"}, server={"weights": "examples"})
    with refused("spec.invalid") as caught:
        catalog.resolve(spec)
    assert [error.field for error in caught.value.errors] == ["robust.rule", "server.weights"]


def test_the_services_sums_under_masks_are_of_real_participants(toy_spec: SpecFactory) -> None:
    assert fields(catalog.resolve(toy_spec(options=SUMMED, **MASKED)), SERVICE) == ["participants.simulated"]
    assert fields(catalog.resolve(toy_spec()), SERVICE) == []


def test_real_participants_are_not_simulated(toy_spec: SpecFactory) -> None:
    assert fields(catalog.resolve(toy_spec(participants={"edge": 1})), SIMULATION) == ["participants.edge"]


@pytest.mark.parametrize("algorithm", ["ferret", "fedavg"])
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
