"""One participant, a fifth and two fifths of them, who send what they like: the rest still gets its model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Array, Contribution
from ferret_core.simulate import SimulationResult, simulate
from tests.security.poison import a_little, absent, noise, poisoned, sign_flip

SpecFactory = Callable[..., ExperimentSpec]
Attack = Callable[[Array], Array]
Run = Callable[[ExperimentSpec], SimulationResult]

CLIENTS = 10
ATTACKS: dict[str, Attack] = {
    "sign flip": lambda update: -update,
    "sign flip, ten times": lambda update: -10 * update,
    "scale 1e4": lambda update: np.float32(1e4) * update,
    "scale 3e38": lambda update: np.full_like(update, 3e38) * np.sign(update),
    "noise": lambda update: np.random.default_rng(0).normal(0, 1, update.shape).astype(np.float32),
    "one block": lambda update: np.concatenate([1e3 * np.ones(32, np.float32), update[32:]]),
}

USUAL = {"sign flip, ten times", "scale 3e38"}


def on_arrays(attack: Attack) -> Callable[[Contribution], Contribution]:
    """The attack on every array of numbers."""
    return lambda sent: Contribution(
        sent.meta, {name: attack(array) if array.dtype == np.float32 else array for name, array in sent.arrays.items()}
    )


def losses(result: SimulationResult) -> list[float]:
    return [done.metrics["eval_loss"] for done in result.rounds if "eval_loss" in done.metrics]


@pytest.fixture
def spec(toy_spec: SpecFactory) -> Callable[..., ExperimentSpec]:
    def make(algorithm: str = "fedavg", **changes: Any) -> ExperimentSpec:
        return toy_spec(
            algorithm,
            rounds=4,
            participants={"simulated": CLIENTS},
            evaluation={"every": 4, "examples": 10, "generate_examples": 0},
            **changes,
        )

    return make


@pytest.fixture(scope="module")
def clean() -> Run:
    """The experiment without anybody hostile, run once however many ask."""
    known = dict[str, SimulationResult]()

    def run(spec: ExperimentSpec) -> SimulationResult:
        key = spec.model_dump_json()
        if key not in known:
            known[key] = simulate(spec)
        return known[key]

    return run


def attackers(count: int) -> set[str]:
    return {f"client-{number:03}" for number in range(2, 2 + count)}


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "attack", [pytest.param(name, marks=[] if name in USUAL else pytest.mark.slow) for name in ATTACKS]
)
def test_poisoners_neither_end_an_experiment_nor_keep_it_from_learning(
    attack: str, count: int, spec: SpecFactory, clean: Run
) -> None:
    wanted = spec(robust={"rule": "median"}) if count == 4 else spec()
    best = losses(clean(wanted))[-1]
    attacked = poisoned(attackers(count), on_arrays(ATTACKS[attack]))
    base, last = losses(simulate(wanted, participate=attacked))
    assert last < base
    assert last - best < 0.4 * (base - best), f"{base:.3f} → {last:.3f}, clean {best:.3f}"


@pytest.mark.parametrize(
    ("algorithm", "attack"),
    [
        pytest.param("fedavg", sign_flip, id="fedavg, sign flip", marks=pytest.mark.slow),
        pytest.param("fedavg", noise, id="fedavg, noise"),
        pytest.param("ferret", sign_flip, id="ferret, sign flip", marks=pytest.mark.slow),
        pytest.param("ferret", noise, id="ferret, noise", marks=pytest.mark.slow),
    ],
)
def test_who_points_elsewhere_is_left_out_and_the_rest_goes_on_as_without_him(
    algorithm: str, attack: Callable[[Contribution], Contribution], spec: SpecFactory
) -> None:
    wanted = spec(algorithm, robust={"rule": "cosine_filter"}, round={"quorum": 0.5})
    without = simulate(wanted, participate=absent(attackers(2)))
    attacked = simulate(wanted, participate=poisoned(attackers(2), attack))
    assert {name for record in attacked.ledger for name, _, _ in record.refused} == attackers(2)
    assert losses(attacked)[-1] == pytest.approx(losses(without)[-1], rel=0.05)


@pytest.mark.slow
def test_honest_participants_of_different_labels_agree_enough(spec: SpecFactory) -> None:
    result = simulate(spec(robust={"rule": "cosine_filter"}, partition={"name": "dirichlet", "alpha": 0.5}))
    assert [record.refused for record in result.ledger] == [()] * 4


@pytest.mark.parametrize("rule", ["clip", "cosine_filter", "median", "trimmed_mean"])
@pytest.mark.slow
def test_colluders_who_stay_within_the_spread_of_the_others_do_not_keep_it_from_learning(
    rule: str, spec: SpecFactory, clean: Run
) -> None:
    wanted = spec(robust={"rule": rule})
    best = losses(clean(wanted))[-1]
    base, last = losses(simulate(wanted, participate=a_little(attackers(2))))
    assert last - best < 0.4 * (base - best), f"{base:.3f} → {last:.3f}, clean {best:.3f}"


def test_an_honest_round_is_the_same_to_the_bit_with_bounds_and_without(spec: SpecFactory, clean: Run) -> None:
    assert clean(spec()).digest == simulate(spec(robust={"rule": "none"})).digest


def test_the_largest_scales_that_ferret_can_send_are_left_out(spec: SpecFactory) -> None:
    """One-bit coordinates with h = 65504 and e = 112 say 8.5e39 of every weight."""

    def largest(sent: Contribution) -> Contribution:
        scales = np.full_like(sent.arrays["scales"], 65504.0)
        return Contribution(sent.meta, {**sent.arrays, "scales": scales, "exponent": np.array([111], np.int32)})

    attacked = poisoned(attackers(1), largest)
    result = simulate(spec("ferret"), participate=attacked)
    for done, record in zip(result.rounds[1:], result.ledger, strict=True):
        assert [name for name, _, _ in record.refused] == ["client-002"]
        assert done.rejected["client-002"].code == "contribution.out_of_bounds"
    assert losses(result)[-1] < losses(result)[0]


def test_two_participants_have_no_median_and_the_absurd_is_refused_all_the_same(toy_spec: SpecFactory) -> None:
    attacked = poisoned({"client-002"}, on_arrays(ATTACKS["scale 3e38"]))
    two = {"participants": {"simulated": 2}, "round": {"quorum": 0.5}}
    result = simulate(toy_spec("fedavg", **two), participate=attacked)
    assert [done.accepted for done in result.rounds[1:]] == [["client-001"]] * 3
    assert all(np.isfinite(losses(result)))


def test_a_round_that_explodes_within_the_bounds_is_undone_and_repeated_without_who_did_it(
    toy_spec: SpecFactory,
) -> None:
    """Without a rule nothing holds back an update of a thousand times the norm but the guard."""
    attacked = poisoned({"client-002"}, on_arrays(lambda update: -1000 * update))
    lax = {"rule": "none", "max_loss_ratio": 1.2}
    result = simulate(
        toy_spec("fedavg", participants={"simulated": 4}, round={"quorum": 0.5}, robust=lax), participate=attacked
    )
    for record in result.ledger:
        ((name, _, why),) = record.refused
        assert (name, "held-out loss" in why) == ("client-002", True)
    assert losses(result)[-1] < losses(result)[0]


@pytest.mark.slow
def test_figures_that_nobody_can_have_measured_are_dropped_from_the_curves(spec: SpecFactory, clean: Run) -> None:
    honest = clean(spec())

    def boasting(sent: Contribution) -> Contribution:
        metrics = {**sent.meta.metrics, "train_loss": 1.7e308, "trained_sequences": 1.7e308}
        return Contribution(sent.meta.model_copy(update={"metrics": metrics}), sent.arrays)

    attacked = poisoned(attackers(2), boasting)
    result = simulate(spec(), participate=attacked)
    assert result.digest != honest.digest or losses(result)[-1] == losses(honest)[-1]
    assert all(
        0 < done.metrics["train_loss"] < 10 and done.metrics["trained_sequences"] < 1e3 for done in result.rounds[1:]
    )
