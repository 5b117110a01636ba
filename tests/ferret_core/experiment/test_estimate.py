"""A plan tells before the run what the run then measures."""

from __future__ import annotations

import pytest

from ferret_core import catalog
from ferret_core.aggregation.projection_noise import ADVISED, MOST
from ferret_core.experiment.estimate import Estimate, document, estimate
from ferret_core.models import architecture
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory

SPEED = 1e12


def planned(spec: ExperimentSpec, model: architecture.Architecture | None = None) -> Estimate:
    return estimate(catalog.resolve(spec), model or architecture.of_folder(spec.model.source), None, 64, SPEED)


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("ferret", {"K": 2000, "coordinates": "sign"}),
        ("ferret", {"bytes_per_round": 4000, "allocation": "uniform", "seeds": "shared"}),
        ("ferret", {"K": 500, "coordinates": "float16", "blocks": 7}),
        ("fedavg", {}),
    ],
)
@pytest.mark.heavy
def test_bytes_and_noise_are_those_of_the_run(
    toy_spec: SpecFactory, algorithm: str, options: dict[str, object]
) -> None:
    spec = toy_spec(algorithm, options=options, rounds=2)
    told = planned(spec)
    base, first, second = simulate(spec).rounds
    assert told.bytes_up == pytest.approx(first.bytes_up / 3, rel=0.08)
    assert told.bytes_down == pytest.approx(second.bytes_down / 3, rel=0.2)
    assert told.total_bytes == 2 * 3 * ((told.bytes_up or 0) + (told.bytes_down or 0))
    if algorithm == "ferret":
        assert told.noise is not None
        assert 100 * told.noise.total == pytest.approx(base.metrics["projection_noise"], rel=0.02)
        assert first.cost["numbers_sent"] == told.K
    else:
        assert (told.noise, told.K, told.advice) == (None, None, ())


@pytest.mark.parametrize("participants", [1, 3, 37])
@pytest.mark.parametrize("name", ["llama-3b", "llama2-7b", "llama2-13b"])
def test_the_default_is_right_for_a_large_model(toy_spec: SpecFactory, name: str, participants: int) -> None:
    default = toy_spec(algorithm={"name": "ferret"}, participants={"simulated": participants}, rounds=100)
    told = planned(default, architecture.of_llama(name))
    assert told.noise is not None
    assert told.noise.total < (ADVISED if participants > 1 else MOST)


def test_what_would_destroy_a_large_model_is_told_with_the_ways_out(toy_spec: SpecFactory) -> None:
    adam = {"name": "ferret", "local": {"optimizer": "adam", "learning_rate": 1e-4}}
    told = planned(toy_spec(algorithm=adam, participants={"simulated": 37}), architecture.of_llama("llama-3b"))
    assert told.noise is not None
    assert told.noise.total > 1
    (advice,) = told.advice
    assert "beyond 50% it is refused" in advice
    assert "algorithm.bytes_per_round = " in advice
    largest = document(told)["noise"]
    assert isinstance(largest, dict)
    assert largest["largest"]["percent"] > 100


def test_a_step_too_short_to_learn_is_told(toy_spec: SpecFactory) -> None:
    told = planned(toy_spec(algorithm={"name": "ferret", "local": {"learning_rate": 1e-4}}))
    assert any("moves next to nothing" in advice for advice in told.advice)


def test_memory_grows_with_the_optimizers_state_and_epochs_need_the_examples(toy_spec: SpecFactory) -> None:
    def of(**local: object) -> Estimate:
        return planned(toy_spec("fedavg", options={"local": local}), architecture.of_llama("llama-1b"))

    small, large = of(optimizer="sgd").memory_bytes or 0, of(optimizer="adam").memory_bytes or 0
    d = of(optimizer="sgd").d
    assert large - small == 2 * 4 * d
    assert of(epochs=1.0).local_seconds is None
    assert of(steps=20).local_seconds == pytest.approx(2 * (of(steps=10).local_seconds or 0))


def test_an_adapters_size_is_left_to_the_run(toy_spec: SpecFactory) -> None:
    told = planned(toy_spec("fedit"))
    assert (told.bytes_up, told.bytes_down, told.total_bytes, told.memory_bytes) == (None, None, None, None)
