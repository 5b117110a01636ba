from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ferret_core import catalog
from ferret_core.algorithms import signsgd
from ferret_core.experiment.spec_patch import revise
from ferret_core.protocol.spec import ExperimentSpec, PluginChoice
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused


@pytest.mark.parametrize(
    ("options", "votes", "counts", "moved"),
    [
        ({}, [[1, 1, -1, 2, 2], [1, -1, -1, 2, -2], [-4, 4, -4, -2, -2]], [1, 1, 1], [2, 2, -2, 2, -2]),
        ({"scale": 0.25}, [[9, -0.1, 3, 1, -1]], [1], [0.25, -0.25, 0.25, 0.25, -0.25]),
        ({"scale": 1.0}, [[1, 1, 1, 1, 1], [1, -1, 1, -1, 1]], [1, 1], [1, 0, 1, 0, 1]),
        ({"scale": 1.0}, [[1, 1, 1, 1, 1], [-1, 1, -1, 1, -1], [-1, -1, -1, -1, -1]], [3, 1, 1], [1, 1, 1, 1, 1]),
        ({"aggregation": "mean"}, [[1, 1, -1, 2, 2], [-4, 4, -4, 2, -2]], [1, 3], [-2.75, 3.25, -3.25, 2, -1]),
    ],
    ids=["the majority, at each tensor's mean size", "the paper's step", "a tie", "a heavier one", "the mean"],
)
def test_a_round_moves_a_model_of_three_and_two_weights(
    lab: Any, weights: Any, options: dict[str, Any], votes: list[list[float]], counts: list[float], moved: list[float]
) -> None:
    updates, algorithm = [np.array(vote, np.float32) for vote in votes], lab.algorithm("signsgd", **options)
    done = lab.round(algorithm, weights((3,), (2,)), updates, weights=counts)
    np.testing.assert_array_equal(done.moved, np.array(moved, np.float32))


def test_zeros_do_not_all_vote_for_the_same(lab: Any, weights: Any) -> None:
    model, algorithm = weights((4000,)), signsgd.Algorithm(signsgd.Config())
    state, nothing = algorithm.init_state(model, 0), np.zeros(4000, np.float32)
    sent = [lab.participate(algorithm, model, state, nothing, seed=seed).contribution for seed in (3, 4)]
    bits = [np.unpackbits(contribution.arrays["signs"], count=4000) for contribution in sent]
    assert all(1800 < item.sum() < 2200 for item in bits)
    assert 1800 < (bits[0] ^ bits[1]).sum() < 2200


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


def test_votes_that_nobody_would_send_are_refused(lab: Any, weights: Any) -> None:
    model, algorithm = weights((3,), (2,)), signsgd.Algorithm(signsgd.Config())
    state = algorithm.init_state(model, 0)
    sent = lab.participate(algorithm, model, state, np.ones(5, np.float32)).contribution
    assert lab.blamed(algorithm, model, sent, signs=sent.arrays["signs"] | np.uint8(1)) == "signs"
    for scales in (-sent.arrays["scales"], sent.arrays["scales"][:1]):
        assert lab.blamed(algorithm, model, sent, scales=scales) == "scales"
