from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from ferret_core.algorithms import fedkseed
from ferret_core.algorithms.base import Weighted
from ferret_core.client.local_round import contribute
from ferret_core.models.digest import model_digest
from ferret_core.projection import FORMAT_VERSION
from ferret_core.protocol.wire import Contribution, encode
from tests.ferret_core.replicas import SpecFactory, clients_of, held_in, replica_of, sent_by
from tests.refusals import refused

LOCAL = {"learning_rate": 1e-3, "steps": 20, "batch_size": 2, "epsilon": 1e-3}


@pytest.mark.heavy
def test_a_participant_sends_four_bytes_a_step(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedkseed", options={"local": {**LOCAL, "steps": 200, "batch_size": 1}}))
    sent = sent_by(replica)[0].contribution
    assert sum(array.nbytes for array in sent.arrays.values()) == 800
    assert len(sent.encode()) < 800 + 512, "names and metadata"
    result = replica.algorithm.aggregate(replica.state, [Weighted(1.0, sent)])
    assert len(encode(result, {"round": 1})) < 4096 / 8 + 800 + 300, "one bit per candidate, and what was drawn"


def test_slopes_add_up_by_candidate_and_average_by_weight(toy_spec: SpecFactory) -> None:
    K = 16
    replica = replica_of(toy_spec("fedkseed", options={"K": K, "local": LOCAL}))
    sent = [sealed.contribution for sealed in sent_by(replica)]
    shares = [0.5, 2.0, 1.5]
    pairs = [Weighted(share, contribution) for share, contribution in zip(shares, sent, strict=True)]
    result = replica.algorithm.aggregate(replica.state, pairs)
    draws = [fedkseed.draw(np.ones(K, np.int64), contribution.meta.seed or 0, 20) for contribution in sent]
    expected = sum(
        share * np.bincount(drawn, weights=contribution.arrays["slopes"], minlength=K) / 4
        for share, contribution, drawn in zip(shares, sent, draws, strict=True)
    )
    drawn = fedkseed.drawn_in(result, K)
    assert set(np.flatnonzero(drawn)) == set(np.concatenate(draws).tolist())
    assert np.allclose(result["slopes"], np.asarray(expected)[drawn], rtol=1e-6)


@pytest.mark.heavy
def test_directions_are_the_experiments_and_draws_the_participants(toy_spec: SpecFactory) -> None:
    first, other = (replica_of(toy_spec("fedkseed", seed=seed)) for seed in (1, 2))
    pool = first.state["candidates"]
    assert (pool.dtype, pool.shape, len(set(pool.tolist()))) == (np.uint64, (4096,), 4096)
    assert not set(pool.tolist()) & set(other.state["candidates"].tolist())
    tasks = [client.task.seed for client in clients_of(first)]
    assert len({tuple(fedkseed.draw(np.ones(4096, np.int64), seed, 20).tolist()) for seed in tasks}) == 3


def test_candidates_are_drawn_in_proportion_to_their_odds() -> None:
    odds = np.array([1, 0, 5, 2], dtype=np.int64) << 40
    counts = Counter(fedkseed.draw(odds, 11, 8000).tolist())
    assert set(counts) == {0, 2, 3}
    assert [counts[k] / 1000 for k in (0, 2, 3)] == pytest.approx([1, 5, 2], abs=0.15)
    assert fedkseed.draw(np.ones(1, np.int64), 2**64 - 1, 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("field", "value"), [("seed", 5), ("seed", None), ("projection", FORMAT_VERSION + 1)])
def test_a_draw_of_ones_own_is_refused(toy_spec: SpecFactory, field: str, value: int | None) -> None:
    replica = replica_of(toy_spec("fedkseed", options={"local": {**LOCAL, "steps": 2}}))
    client = clients_of(replica)[0]
    sent = contribute(replica, client).sealed.contribution
    algorithm: Any = replica.algorithm
    algorithm.config.check(sent, client.task, replica.shapes)
    foreign = Contribution(sent.meta.model_copy(update={field: value}), sent.arrays)
    with refused("contribution.malformed", f"metadata.{field} = {value}"):
        algorithm.config.check(foreign, client.task, replica.shapes)


def test_a_model_in_half_precision_is_left_as_it_was_and_moved_by_the_same_bits(toy_spec: SpecFactory) -> None:
    spec = held_in("float16", toy_spec("fedkseed", options={"K": 64, "local": LOCAL}))
    replicas = [replica_of(spec), replica_of(spec)]
    sent = sent_by(replicas[0])[0].contribution
    assert model_digest(replicas[0].model, files=replicas[0].files) == replicas[0].digest
    result = replicas[0].algorithm.aggregate(replicas[0].state, [Weighted(1.0, sent)])
    for item in replicas:
        item.algorithm.apply_update(item.model, item.state, result, 1.0)
    first, second = (model_digest(item.model, files=item.files) for item in replicas)
    assert first == second != replicas[0].digest


def test_a_runaway_is_no_contribution_and_leaves_the_model(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedkseed", options={"local": {**LOCAL, "learning_rate": 1e12}}))
    with refused("training.non_finite", "learning_rate"):
        contribute(replica, clients_of(replica)[0])
    assert model_digest(replica.model, files=replica.files) == replica.digest
