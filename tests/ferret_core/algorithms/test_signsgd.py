from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ferret_core.algorithms import signsgd
from ferret_core.algorithms._base import Weighted
from ferret_core.models.parameters import shapes
from ferret_core.projection.budget import METADATA
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Array, Contribution
from ferret_core.simulate import simulate

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


def test_without_error_feedback_nothing_is_kept(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    algorithm = signsgd.Algorithm(signsgd.Config())
    assert lab.participate(algorithm, weights((9,)), {}, draw(9)).memory == {}


def test_it_sends_one_bit_for_each_parameter_and_one_number_for_each_tensor(toy_spec: SpecFactory) -> None:
    result = simulate(toy_spec("signsgd", rounds=2))
    d, tensors = 30_880, 20
    for sums in (result.rounds[2].bytes_up, result.rounds[2].bytes_down):
        assert 0 <= sums / 3 - (d / 8 + 4 * tensors) <= METADATA


def test_votes_that_nobody_would_send_are_refused(lab: Any, weights: Any) -> None:
    model, algorithm = weights((3,), (2,)), signsgd.Algorithm(signsgd.Config())
    contribution = lab.participate(algorithm, model, {}, np.ones(5, np.float32)).contribution
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
