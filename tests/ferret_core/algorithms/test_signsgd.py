from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ferret_core import catalog
from ferret_core.algorithms import signsgd
from ferret_core.algorithms._base import Weighted
from ferret_core.experiment.spec_patch import revise
from ferret_core.models.parameters import shapes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, PluginChoice
from ferret_core.protocol.wire import Array, Contribution
from ferret_core.simulate import simulate
from tests.algorithms import METADATA
from tests.refusals import refused

SpecFactory = Callable[..., ExperimentSpec]


def voted(lab: Any, weights: Any, options: dict[str, Any], *votes: tuple[float, list[float]]) -> Array:
    """What a round moves a model of three and two weights by; ``votes`` are pairs of weight and update."""
    model, algorithm = weights((3,), (2,)), signsgd.Algorithm(signsgd.Config(**options))
    state = algorithm.init_state(model, 0)
    received = [
        Weighted(weight, lab.participate(algorithm, model, state, np.array(update, np.float32)).contribution)
        for weight, update in votes
    ]
    return lab.update(algorithm, model, state, *received)[0]


def test_the_majority_decides_the_sign_and_the_mean_size_of_each_tensor_the_step(lab: Any, weights: Any) -> None:
    first, two, three = [1.0, 1, -1, 2, 2], [1.0, -1, -1, 2, -2], [-4.0, 4, -4, -2, -2]
    moved = voted(lab, weights, {}, (1, first), (1, two), (1, three))
    np.testing.assert_array_equal(moved, np.array([2, 2, -2, 2, -2], np.float32))


def test_a_fixed_step_is_the_papers(lab: Any, weights: Any) -> None:
    moved = voted(lab, weights, {"scale": 0.25}, (1, [9, -0.1, 3, 1, -1]))
    np.testing.assert_array_equal(moved, np.array([0.25, -0.25, 0.25, 0.25, -0.25], np.float32))


def test_a_tie_leaves_a_weight_where_it_is(lab: Any, weights: Any) -> None:
    moved = voted(lab, weights, {"scale": 1.0}, (1, [1, 1, 1, 1, 1]), (1, [1, -1, 1, -1, 1]))
    np.testing.assert_array_equal(moved, np.array([1, 0, 1, 0, 1], np.float32))


def test_a_heavier_participant_has_more_votes(lab: Any, weights: Any) -> None:
    votes = (3, [1, 1, 1, 1, 1]), (1, [-1, 1, -1, 1, -1]), (1, [-1, -1, -1, -1, -1])
    np.testing.assert_array_equal(voted(lab, weights, {"scale": 1.0}, *votes), np.ones(5, np.float32))


def test_zeros_do_not_all_vote_for_the_same(lab: Any, weights: Any) -> None:
    model, algorithm = weights((4000,)), signsgd.Algorithm(signsgd.Config())
    state, nothing = algorithm.init_state(model, 0), np.zeros(4000, np.float32)
    sent = [lab.participate(algorithm, model, state, nothing, seed=seed).contribution for seed in (3, 4)]
    bits = [np.unpackbits(contribution.arrays["signs"], count=4000) for contribution in sent]
    assert all(1800 < item.sum() < 2200 for item in bits)
    assert 1800 < (bits[0] ^ bits[1]).sum() < 2200


def test_error_feedback_keeps_what_a_sign_and_its_scale_leave(
    lab: Any, weights: Any, draw: Callable[..., Array]
) -> None:
    model, algorithm = weights((60, 2), (17,)), signsgd.Algorithm(signsgd.Config(error_feedback=True))
    state, update, memory = algorithm.init_state(model, 0), draw(137, 1), {"error": draw(137, 2)}
    contribution = lab.participate(algorithm, model, state, update, memory)
    moved, _ = lab.update(algorithm, model, state, Weighted(1.0, contribution.contribution))
    np.testing.assert_allclose(moved + contribution.memory["error"], update + memory["error"], rtol=0, atol=1e-6)


def distance_from_the_uncompressed_sum(lab: Any, weights: Any, rounds: int = 40, **options: Any) -> float:
    """Five participants who pull to different sides: how far off is what was applied, as a share of what was meant?"""
    model, algorithm = weights((40, 5), (60,)), signsgd.Algorithm(signsgd.Config(**options))
    draws, state = np.random.default_rng(1), algorithm.init_state(model, 0)
    own = draws.standard_normal((5, 260))
    memories, meant, applied = [{}] * 5, np.zeros(260), np.zeros(260)
    for n in range(rounds):
        updates = (own + draws.standard_normal((5, 260))).astype(np.float32) / 8
        parts = [
            lab.participate(algorithm, model, state, update, memory, seed=n)
            for update, memory in zip(updates, memories, strict=True)
        ]
        memories = [part.memory for part in parts]
        moved, state = lab.update(algorithm, model, state, *(Weighted(1.0, part.contribution) for part in parts))
        meant, applied = meant + updates.mean(axis=0), applied + moved
    return float(np.linalg.norm(applied - meant) / np.linalg.norm(meant))


@pytest.mark.heavy
def test_with_error_feedback_the_sum_follows_the_uncompressed_one(lab: Any, weights: Any) -> None:
    assert distance_from_the_uncompressed_sum(lab, weights, error_feedback=True) < 0.2
    assert distance_from_the_uncompressed_sum(lab, weights, error_feedback=True, rounds=160) < 0.1
    assert distance_from_the_uncompressed_sum(lab, weights, aggregation="mean") > 0.3
    assert distance_from_the_uncompressed_sum(lab, weights) > 0.3


def test_applied_and_kept_are_what_there_was(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    """Of three participants with different data and weights."""
    model, algorithm = weights((60, 2), (17,)), signsgd.Algorithm(signsgd.Config(error_feedback=True))
    state, counts = algorithm.init_state(model, 0), np.array([1.0, 2, 5])
    updates = [draw(137, seed) for seed in range(3)]
    parts = [lab.participate(algorithm, model, state, update) for update in updates]
    received = (Weighted(count, part.contribution) for count, part in zip(counts, parts, strict=True))
    moved, _ = lab.update(algorithm, model, state, *received)
    kept = np.average([part.memory["error"] for part in parts], axis=0, weights=counts)
    np.testing.assert_allclose(moved + kept, np.average(updates, axis=0, weights=counts), rtol=0, atol=1e-6)


def test_the_mean_is_of_each_participants_signs_at_its_own_scale(lab: Any, weights: Any) -> None:
    moved = voted(lab, weights, {"aggregation": "mean"}, (1, [1.0, 1, -1, 2, 2]), (3, [-4.0, 4, -4, 2, -2]))
    np.testing.assert_array_equal(moved, np.array([-2.75, 3.25, -3.25, 2, -1], np.float32))


def test_a_vote_with_error_feedback_is_refused() -> None:
    with pytest.raises(ValueError, match="error_feedback = true and aggregation = 'vote' exclude each other"):
        signsgd.Config(error_feedback=True, aggregation="vote")
    algorithm = {"name": "signsgd", "error_feedback": True, "aggregation": "vote"}
    with refused("spec.invalid", "aggregation = 'mean'"):
        catalog.filled("algorithm", PluginChoice.model_validate(algorithm))


@pytest.mark.parametrize(
    ("said", "meant"),
    [({}, "vote"), ({"error_feedback": True}, "mean"), ({"aggregation": "mean"}, "mean"), ({"scale": 0.1}, "vote")],
)
def test_what_is_not_said_is_written_out(said: dict[str, Any], meant: str) -> None:
    assert signsgd.Config(**said).aggregation == meant


def test_turning_error_feedback_on_in_a_stored_specification_changes_the_aggregation(toy_spec: SpecFactory) -> None:
    stored = catalog.resolve(toy_spec("signsgd")).spec.model_dump(mode="json")
    changed = revise(stored, {"algorithm": {"error_feedback": True}})
    assert changed.dropped == {"algorithm.aggregation": "vote"}
    assert (
        catalog.resolve(ExperimentSpec.model_validate(changed.document)).spec.algorithm.options["aggregation"] == "mean"
    )


def test_a_mean_is_sent_down_whole(toy_spec: SpecFactory) -> None:
    done = simulate(toy_spec("signsgd", options={"error_feedback": True}, rounds=2)).rounds[2]
    assert 0 <= done.bytes_up / 3 - (30_880 / 8 + 4 * 20) <= METADATA
    assert 0 <= done.bytes_down / 3 - 4 * 30_880 <= METADATA


def test_without_error_feedback_nothing_is_kept(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    model, algorithm = weights((9,)), signsgd.Algorithm(signsgd.Config())
    assert lab.participate(algorithm, model, algorithm.init_state(model, 0), draw(9)).memory == {}


def test_it_sends_one_bit_for_each_parameter_and_one_number_for_each_tensor(toy_spec: SpecFactory) -> None:
    result = simulate(toy_spec("signsgd", rounds=2))
    d, tensors = 30_880, 20
    for sums in (result.rounds[2].bytes_up, result.rounds[2].bytes_down):
        assert 0 <= sums / 3 - (d / 8 + 4 * tensors) <= METADATA


def test_votes_that_nobody_would_send_are_refused(lab: Any, weights: Any) -> None:
    model, algorithm = weights((3,), (2,)), signsgd.Algorithm(signsgd.Config())
    state = algorithm.init_state(model, 0)
    contribution = lab.participate(algorithm, model, state, np.ones(5, np.float32)).contribution
    for wrong, says in [
        ({"signs": contribution.arrays["signs"] | np.uint8(1)}, "bits after the first 5 are not zero"),
        ({"scales": -contribution.arrays["scales"]}, "is negative"),
        ({"scales": contribution.arrays["scales"][:1]}, r"expected float32 \(2,\)"),
    ]:
        with pytest.raises(FerretError, match=says) as caught:
            algorithm.config.check(
                Contribution(contribution.meta, {**contribution.arrays, **wrong}), lab.task, shapes(model)
            )
        assert caught.value.code == "contribution.malformed"
