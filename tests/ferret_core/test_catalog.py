from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest

from ferret_core import catalog, discovery
from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError, FieldError
from ferret_core.protocol.spec import PluginChoice
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

PRESETS = [name for name in catalog.names("algorithms") if catalog.base(name) != name]


def filled(name: str, **options: Any) -> PluginChoice:
    return catalog.filled("algorithm", PluginChoice.model_validate({"name": name, **options}))


@pytest.mark.parametrize("kind", ["algorithms", "datasets", "partitions", "models", "experiments"])
def test_every_entry_says_what_it_is_and_what_it_takes(kind: catalog.Kind) -> None:
    found = catalog.entries(kind)
    assert found
    for entry in found:
        assert entry == catalog.entry(kind, entry.name)
        assert entry.title
        jsonschema.Draft202012Validator.check_schema(entry.options)


def test_resolving_fills_in_every_option_and_is_stable(toy_spec: SpecFactory) -> None:
    resolved = catalog.resolve(toy_spec()).spec
    assert resolved.algorithm.options["bytes_per_round"] == 8192
    assert resolved.algorithm.options["local"]["learning_rate"] == 1e-2
    assert catalog.resolve(resolved).spec == resolved


@pytest.mark.parametrize("name", catalog.names("algorithms"))
def test_options_that_were_filled_in_have_the_same_digest_when_they_are_given(name: str) -> None:
    once = filled(name)
    assert digest_json(filled(**once.model_dump()).model_dump()) == digest_json(once.model_dump())


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"algorithm": {"name": "ferret", "K": 0}}, "algorithm.K", 0),
        ({"algorithm": {"name": "ferret", "k": 5}}, "algorithm.k", 5),
        ({"algorithm": {"name": "ferret", "local": {"steps": -1}}}, "algorithm.local.steps", -1),
        ({"algorithm": {"name": "ferrret"}}, "algorithm.name", "ferrret"),
        ({"dataset": {"name": "gsm9k"}}, "dataset.name", "gsm9k"),
        ({"partition": {"name": "dirichlet", "alpha": 0}}, "partition.alpha", 0),
    ],
)
def test_a_wrong_option_is_named_with_its_value(
    toy_spec: SpecFactory, changes: dict[str, Any], field: str, value: Any
) -> None:
    with refused("spec.invalid") as caught:
        catalog.resolve(toy_spec(**changes))
    assert [(error.field, error.value) for error in caught.value.errors] == [(field, value)]
    assert repr(value) in caught.value.detail


def test_all_wrong_options_are_named_at_once(toy_spec: SpecFactory) -> None:
    with pytest.raises(FerretError) as caught:
        catalog.resolve(toy_spec(algorithm={"name": "ferret", "K": 0, "basis": "Z"}, partition={"name": "x"}))
    assert {error.field for error in caught.value.errors} == {"algorithm.K", "algorithm.basis", "partition.name"}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_its_algorithm_with_options_of_which_each_can_be_replaced(preset: str) -> None:
    assert filled(preset).name == catalog.base(preset)
    steps = filled(preset, local={"steps": 3}).options["local"]
    assert steps == {**filled(preset).options["local"], "steps": 3}


@pytest.mark.parametrize("preset", PRESETS)
def test_the_entry_of_a_preset_follows_its_algorithms_and_shows_its_values_as_defaults(preset: str) -> None:
    algorithm = catalog.base(preset)
    names = [entry.name for entry in catalog.entries("algorithms")]
    assert names == catalog.names("algorithms")
    assert names[names.index(preset) - 1] == algorithm
    entry = catalog.entry("algorithms", preset)
    assert f"preset of ``{algorithm}``" in entry.description
    shown = {name: option["default"] for name, option in entry.options["properties"].items()}
    assert shown == filled(preset).model_dump(mode="json", exclude={"name"})


def test_what_a_user_sets_wins_over_a_preset_and_takes_away_what_it_excludes() -> None:
    assert filled("fedmezo", local={"epsilon": 0.5}) == filled("fedzo", local={"learning_rate": 1e-6, "epsilon": 0.5})
    assert filled("fedkseed_pro", sampling="uniform") == filled("fedkseed")
    assert filled("ferret", K=5).options.items() >= {"K": 5, "bytes_per_round": None}.items()
    by_bytes = filled("ferret_paper", bytes_per_round=9000).options
    assert (by_bytes["K"], by_bytes["bytes_per_round"], by_bytes["basis"]) == (None, 9000, "T")


@pytest.mark.parametrize("optimizer", ["adam", "normalized"])
def test_a_presets_rate_is_for_its_own_optimizer(optimizer: str) -> None:
    assert filled("fedit_sgd", local={"optimizer": optimizer}) == filled("fedit", local={"optimizer": optimizer})
    assert filled("fedit_sgd", local={"optimizer": "sgd"}) == filled("fedit_sgd")


@pytest.mark.parametrize("options", [{"K": 4096}, {"local": {"epsilon": 0}}, {"local": {"optimizer": "adam"}}])
def test_a_presets_wrong_options_are_refused_as_its_algorithms(options: dict[str, Any]) -> None:
    found: list[tuple[FieldError, ...]] = []
    for name in ("fedmezo", "fedzo"):
        with pytest.raises(FerretError) as caught:
            filled(name, **options)
        found.append(tuple(caught.value.errors))
    assert found[0] == found[1]


def test_an_unknown_algorithm_is_told_of_presets_too() -> None:
    with refused("spec.invalid", "fedmezo"):
        filled("fedmezzo")


@pytest.mark.heavy
def test_several_threads_may_ask_at_once() -> None:
    """A form asks for all sections at once, and parsing is for one thread at a time in Python 3.11."""
    kinds: list[catalog.Kind] = ["algorithms", "datasets", "partitions"]
    with ThreadPoolExecutor(6) as threads:
        for _ in range(10):
            discovery.documentation.cache_clear()
            assert all(threads.map(catalog.entries, kinds * 2))
