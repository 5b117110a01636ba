from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest

from ferret_core import catalog, discovery
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec

SpecFactory = Callable[..., ExperimentSpec]


@pytest.mark.parametrize("kind", ["algorithms", "datasets", "partitions", "models", "experiments"])
def test_every_entry_says_what_it_is_and_what_it_takes(kind: catalog.Kind) -> None:
    found = catalog.entries(kind)
    assert found
    for entry in found:
        assert entry == catalog.entry(kind, entry.name)
        assert entry.title
        jsonschema.Draft202012Validator.check_schema(entry.options)


def test_resolving_fills_in_every_option_and_is_stable(toy_spec: SpecFactory) -> None:
    resolved = catalog.resolve(toy_spec())
    assert resolved.algorithm.options["bytes_per_round"] == 8192
    assert resolved.algorithm.options["local"]["learning_rate"] == 1e-2
    assert catalog.resolve(resolved) == resolved


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
    with pytest.raises(FerretError) as caught:
        catalog.resolve(toy_spec(**changes))
    assert caught.value.code == "spec.invalid"
    assert [(error.field, error.value) for error in caught.value.errors] == [(field, value)]
    assert repr(value) in caught.value.detail


def test_all_wrong_options_are_named_at_once(toy_spec: SpecFactory) -> None:
    with pytest.raises(FerretError) as caught:
        catalog.resolve(toy_spec(algorithm={"name": "ferret", "K": 0, "basis": "Z"}, partition={"name": "x"}))
    assert {error.field for error in caught.value.errors} == {"algorithm.K", "algorithm.basis", "partition.name"}


@pytest.mark.heavy
def test_several_threads_may_ask_at_once() -> None:
    """A form asks for all sections at once, and parsing is for one thread at a time in Python 3.11."""
    kinds: list[catalog.Kind] = ["algorithms", "datasets", "partitions"]
    with ThreadPoolExecutor(6) as threads:
        for _ in range(10):
            discovery.documentation.cache_clear()
            assert all(threads.map(catalog.entries, kinds * 2))
