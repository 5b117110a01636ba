"""``precision = "auto"`` is settled once, by the hardware that trains, and is then a part of the specification."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core import catalog
from ferret_core.experiment.precision import resolve_precision
from ferret_core.ledger.record import LedgerRecord
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory

AUTO = {"steps": 1, "batch_size": 2, "accumulation": 1}
SMALL = {"rounds": 1, "evaluation": {"examples": 2, "generate_examples": 0}}


def precision(spec: Any) -> str:
    return spec.algorithm.options["local"]["precision"]


@pytest.mark.parametrize(
    ("given", "changes", "quick", "expected"),
    [
        ("auto", {}, True, "bfloat16"),
        ("auto", {}, False, "float32"),
        ("auto", {"participants": {"simulated": 1, "edge": 1}}, True, "float32"),
        ("float32", {}, True, "float32"),
        ("bfloat16", {}, False, "bfloat16"),
    ],
)
def test_the_hardware_decides_unless_the_specification_or_a_participant_does(
    toy_spec: SpecFactory, given: str, changes: dict[str, Any], quick: bool, expected: str
) -> None:
    spec = toy_spec("fedavg", options={"local": {**AUTO, "precision": given}}, **changes)
    found = resolve_precision(catalog.resolve(spec), quick)
    assert precision(found.spec) == expected
    assert found.config.local.precision == expected
    assert found.traits.first_order is not None
    assert found.traits.first_order.precision == expected


def test_an_algorithm_without_gradients_has_no_precision(toy_spec: SpecFactory) -> None:
    experiment = catalog.resolve(toy_spec("fedzo"))
    assert resolve_precision(experiment, True) is experiment


@pytest.mark.parametrize("quick", [False, True])
def test_a_simulation_is_that_of_the_resolved_specification(
    toy_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch, quick: bool
) -> None:
    def ledger(precision: str) -> list[LedgerRecord]:
        return simulate(toy_spec("fedavg", options={"local": {**AUTO, "precision": precision}}, **SMALL)).ledger

    monkeypatch.setattr("ferret_core.simulate.fast_bfloat16", lambda device: quick)
    assert ledger("auto") == ledger("bfloat16" if quick else "float32")
    assert ledger("auto") != ledger("float32" if quick else "bfloat16")
