from __future__ import annotations

import math

import numpy as np
import pytest

from ferret_core.aggregation.aggregate import aggregate_round
from ferret_core.algorithms import fedkseed
from ferret_core.algorithms.base import State, Weighted
from ferret_core.algorithms.fedkseed import odds
from ferret_core.contribution import SealedContribution
from ferret_core.protocol.wire import Array
from ferret_core.replica.replica import Replica
from tests.ferret_core.replicas import SpecFactory, replica_of, sent_by

LOCAL = {"learning_rate": 1e-4, "steps": 20, "batch_size": 2, "epsilon": 1e-3}
IMPORTANCE = {"sampling": "importance", "local": LOCAL}


def one_round(replica: Replica) -> list[SealedContribution]:
    sent = sent_by(replica)
    aggregate_round(replica, "simulation", sent)
    return sent


def history(means: list[float]) -> State:
    """Of directions whose slopes had these mean magnitudes."""
    return {"magnitudes": np.array(means, np.float32) * 3, "counts": np.full(len(means), 3, np.int32)}


def probabilities(state: State) -> Array:
    found = odds(state)
    return found / found.sum()


def test_at_first_all_directions_are_drawn_alike(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedkseed", options=IMPORTANCE))
    assert len(set(odds(replica.state).tolist())) == 1


def test_probabilities_are_the_softmax_of_scaled_magnitudes() -> None:
    found = probabilities(history([0.5, 2.5, 0.5, 1.0]))
    expected = np.exp([0.0, 1.0, 0.0, 0.25])
    assert found.sum() == pytest.approx(1.0)
    assert np.allclose(found, expected / expected.sum(), rtol=1e-11)
    assert found.argmax() == 1


def test_odds_of_the_largest_pool_add_up_without_overflow() -> None:
    found = odds(history([0.0] + [7.0] * (2**20 - 1)))
    assert found.dtype == np.int64
    assert found.sum() == sum(found.tolist())
    assert found[1] / found[0] == pytest.approx(math.e, rel=1e-11)


@pytest.mark.heavy
def test_the_history_holds_what_everybody_found(toy_spec: SpecFactory) -> None:
    """Two rounds' magnitudes by candidate, each cut at the clip, and the 0 that a history begins with."""
    K, clip = 8, 0.5
    replica = replica_of(toy_spec("fedkseed", options={**IMPORTANCE, "K": K, "clip": clip}))
    magnitudes, counts = np.zeros(K), np.ones(K, np.int32)
    for _ in range(2):
        before = odds(replica.state)
        for round_ in one_round(replica):
            drawn = fedkseed.draw(before, round_.meta.seed or 0, 20)
            np.add.at(magnitudes, drawn, np.minimum(np.abs(round_.contribution.arrays["slopes"]), clip))
            np.add.at(counts, drawn, 1)
    assert np.array_equal(replica.state["counts"], counts)
    assert counts.sum() == K + 2 * 3 * 20
    assert np.allclose(replica.state["magnitudes"], magnitudes, rtol=1e-6)
    assert len(set(odds(replica.state).tolist())) > 1


def test_one_result_moves_the_history_of_others_alike(toy_spec: SpecFactory) -> None:
    """Nothing but the round's result tells a replica what to draw by."""
    spec = toy_spec("fedkseed", options={**IMPORTANCE, "K": 16})
    replica, follower = replica_of(spec), replica_of(spec)
    start = replica.state
    sent = one_round(replica)
    result = follower.algorithm.aggregate(start, [Weighted(1.0, item.contribution) for item in sent])
    state = follower.algorithm.apply_update(follower.model, start, result, 1.0)
    assert np.array_equal(odds(state), odds(replica.state))
    assert np.array_equal(start["counts"], np.ones(16, np.int32)), "the state it came from is untouched"
