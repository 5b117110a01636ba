"""Noise, room and signal of the mechanism, and configurations that would be meaningless."""

from __future__ import annotations

import numpy as np
import pytest

from ferret_core.privacy.mechanism import (
    RecordMechanism,
    RecordPrivacy,
    calibrated,
    units_of,
    unwrapped,
    wrapped,
)
from ferret_core.protocol.spec import ExperimentSpec, PluginChoice
from tests.refusals import refused

PRIVACY = {"unit": "example", "epsilon": 8.0, "batch": 100, "records_least": 2000}


def spec_of(rounds: int = 200, secure: dict[str, object] | None = None, **changes: object) -> ExperimentSpec:
    tree = {
        "name": "records",
        "rounds": rounds,
        "model": {"source": "./model"},
        "dataset": {"name": "jsonl", "train": "train.jsonl"},
        "participants": {"simulated": 5},
        "secure": {"aggregation": "masked", **(secure or {})},
        "privacy": {**PRIVACY, **changes},
    }
    return ExperimentSpec.model_validate(tree)


def test_five_hospitals_have_the_researchs_noise_and_useful_coordinates() -> None:
    spec = calibrated(spec_of(), 5)
    assert spec.privacy.noise_multiplier == pytest.approx(0.896, abs=0.003)
    mechanism = RecordMechanism.of(spec, 5)
    assert mechanism.honest == 3
    assert mechanism.useful == pytest.approx(7_500, rel=0.01)
    assert mechanism.deviation(9_000) == pytest.approx(mechanism.noise_multiplier * np.sqrt(3_000))
    assert [mechanism.bits(K) for K in (6_000, 44_000, 154_000)] == [12, 13, 14]


def test_fewer_honest_sites_add_more_noise_each() -> None:
    one, two = (RecordMechanism.of(calibrated(spec_of(secure={"colluders": n, "least": 4}), 5), 5) for n in (1, 2))
    assert (one.honest, two.honest) == (3, 2)
    assert two.deviation(1000) == pytest.approx(np.sqrt(3 / 2) * one.deviation(1000))


def test_a_meaningless_configuration_is_refused_with_its_figures() -> None:
    with refused("privacy.meaningless", "useful coordinates", "at least 100", field="privacy.epsilon"):
        calibrated(spec_of(epsilon=0.1), 5)
    with refused("privacy.meaningless", "ε = ", field="privacy.epsilon"):
        calibrated(spec_of(noise_multiplier=50.0), 5)


def test_given_noise_must_meet_the_target_over_all_rounds() -> None:
    assert calibrated(spec_of(noise_multiplier=1.5), 5).privacy.noise_multiplier == 1.5
    with refused("spec.invalid", "after 400 rounds", "above 8", field="privacy.noise_multiplier"):
        calibrated(spec_of(400, noise_multiplier=0.9), 5)


def test_noise_too_fine_for_the_integers_is_refused() -> None:
    mechanism = RecordMechanism(0.05, 0.9, 100, 5, 3)
    mechanism.require(60)
    with refused("spec.invalid", "at least 4", "use 60", field="algorithm.K"):
        mechanism.require(30)
    with refused("spec.invalid", "at most 24", field="algorithm.K"):
        mechanism.require(1 << 40)
    small = spec_of().model_copy(update={"algorithm": PluginChoice.model_validate({"name": "ferret", "K": 30})})
    with refused("spec.invalid", "at least 4", field="algorithm.K"):
        calibrated(small, 5)


def test_an_experiment_of_sites_stays_as_it_is() -> None:
    spec = spec_of().model_copy(update={"privacy": ExperimentSpec.model_fields["privacy"].default})
    assert calibrated(spec, 5) is spec


def test_units_are_examples_or_share_a_field() -> None:
    assert units_of(["", ""], spec_of(batch=1, records_least=2)) == [[0], [1]]
    patients = spec_of(unit="field:patient_id", batch=1, records_least=2)
    assert units_of(["a", "b", "a"], patients) == [[0, 2], [1]]
    with refused("privacy.too_few_records", "1", "at least 2", field="privacy.records_least"):
        units_of(["a", "a", "a"], patients)
    with refused("privacy.unit_missing", "example 2", field="privacy.unit"):
        units_of(["a", ""], patients)


def test_the_sum_of_all_noise_has_the_promised_deviation() -> None:
    mechanism = RecordMechanism(0.05, 1.0, 100, 5, 3)
    K = 40_000
    total = sum(RecordPrivacy(mechanism, []).noised(np.zeros(K, np.int64)) for _ in range(mechanism.honest))
    assert np.std(total) == pytest.approx(np.sqrt(K), rel=5 / np.sqrt(2 * K))


def test_integers_come_back_from_the_ring_and_sums_wrap() -> None:
    values = np.array([-2048, -1, 0, 1, 2047])
    assert unwrapped(wrapped(values, 12), 12).tolist() == values.tolist()
    total = (wrapped(np.array([2000]), 12) + wrapped(np.array([-1500]), 12)) & 4095
    assert unwrapped(total, 12).tolist() == [500]
