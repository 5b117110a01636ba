from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ferret_core.algorithms import qsgd
from ferret_core.algorithms.configs.qsgd import level_layout, pack_levels, unpack_levels
from ferret_core.protocol.wire import Array
from tests.refusals import refused

SEEDS = 400
NORMS = ["max", "l2"]


def update_of(d: int, seed: int = 0) -> Array:
    return (np.random.default_rng(seed).standard_normal(d) ** 3).astype(np.float32)


def received(lab: Any, weights: Any, update: Array, seed: int = 1, **options: Any) -> Array:
    """What a round of one participant moves the model by."""
    return lab.round(lab.algorithm("qsgd", **options), weights((len(update),)), [update], seeds=[seed]).moved


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.heavy
def test_the_mean_over_seeds_is_the_update(lab: Any, weights: Any, norm: str, levels: int) -> None:
    """Every entry within five standard errors of a Bernoulli draw between two levels."""
    update = update_of(60)
    options = {"norm": norm, "levels": levels, "bucket": 20}
    mean = np.mean([received(lab, weights, update, seed, **options) for seed in range(SEEDS)], axis=0)
    buckets = update.reshape(3, 20).astype(np.float64)
    scale = np.abs(buckets).max(1) if norm == "max" else np.linalg.norm(buckets, axis=1)
    step = scale[:, None] / levels
    chance = np.abs(buckets) / step % 1
    deviation = step * np.sqrt(chance * (1 - chance) / SEEDS)
    assert (np.abs(mean.reshape(3, 20) - buckets) <= 5 * deviation + 1e-5 * scale[:, None]).all()


@pytest.mark.parametrize("levels", [1, 2, 4, 16, 127])
@pytest.mark.parametrize("bucket", [16, 256])
def test_the_error_is_within_the_papers_bound(lab: Any, weights: Any, levels: int, bucket: int) -> None:
    """Lemma 3.1: E‖Q(v) − v‖² ≤ min(n/s², √n/s)·‖v‖². One norm at a time, as the lemma has one vector."""
    update = update_of(bucket, seed=levels)
    squares = [
        np.square(received(lab, weights, update, seed, norm="l2", levels=levels, bucket=bucket) - update).sum()
        for seed in range(40)
    ]
    bound = min(bucket / levels**2, math.sqrt(bucket) / levels)
    assert 0 < np.mean(squares) <= bound * np.square(update).sum()


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 127), st.integers(1, 70), st.integers(1, 100), st.sampled_from(NORMS), st.integers(-20, 120))
def test_no_entry_is_off_by_a_level_or_changes_its_sign(
    lab: Any, weights: Any, levels: int, bucket: int, d: int, norm: str, exponent: int
) -> None:
    update = (update_of(d, seed=levels) * 2.0**exponent).astype(np.float32)
    update[d // 2] = 0
    update = 1 - (1 - update)  # as a weight of 1 has it when it has moved
    config = qsgd.Config(levels=levels, bucket=bucket, norm=norm)
    algorithm, model = qsgd.Algorithm(config), weights((d,))
    part = lab.participate(algorithm, model, algorithm.init_state(model, 0), update)
    found, norms = config.decoded(part.contribution.arrays, d), part.contribution.arrays["norms"]
    step = np.repeat(norms.astype(np.float64), min(bucket, d))[:d] / levels
    assert (np.abs(found - update.astype(np.float64)) <= step * (1 + 1e-5)).all()
    assert (found * np.sign(update) >= 0).all()
    assert found[d // 2] == 0


def test_participants_round_by_seeds_of_their_own_and_the_mean_gets_better(lab: Any, weights: Any) -> None:
    """Forty with different data."""
    updates = [update_of(2000, seed) for seed in range(40)]

    def off(count: int) -> float:
        moved = lab.round(lab.algorithm("qsgd"), weights((2000,)), updates[:count]).moved
        return float(np.square(moved - np.mean(updates[:count], axis=0)).sum())

    assert off(40) == pytest.approx(off(1) / 40, rel=0.3)


def test_what_nobody_would_send_is_refused(lab: Any, weights: Any) -> None:
    model, algorithm = weights((41,)), lab.algorithm("qsgd", bucket=20)
    sent = lab.participate(algorithm, model, algorithm.init_state(model, 0), update_of(41)).contribution
    for norms in (-sent.arrays["norms"], sent.arrays["norms"][:1]):
        assert lab.blamed(algorithm, model, sent, norms=norms) == "norms"
    assert lab.blamed(algorithm, model, sent, levels=np.array([3**40, 0], np.uint64)) == "levels"
    assert lab.blamed(algorithm, model, sent, meta={"K": (40,)}) == "metadata.K"


@given(st.integers(1, 127), st.integers(1, 300), st.integers(0, 2**32))
def test_what_is_packed_is_unpacked(s: int, count: int, seed: int) -> None:
    levels = np.random.default_rng(seed).integers(-s, s, count, endpoint=True)
    packed = pack_levels(levels, s)
    dtype, shape = level_layout(s, count)
    assert (packed.dtype, packed.shape) == (dtype, shape)
    np.testing.assert_array_equal(unpack_levels(packed, s, count), levels)


@pytest.mark.parametrize("s", range(1, 128))
def test_a_word_holds_as_many_as_it_can(s: int) -> None:
    (words,) = level_layout(s, 10_000).shape
    assert words == -(-10_000 // math.floor(64 / math.log2(2 * s + 1)))
    extremes = np.full(10_000, -s)
    np.testing.assert_array_equal(unpack_levels(pack_levels(extremes, s), s, 10_000), extremes)


def test_words_that_nobody_would_pack_are_refused() -> None:
    packed = pack_levels(np.ones(41, np.int64), 1)
    for wrong, says in [
        (packed + np.array([0, 3], np.uint64), "numbers after the first 41 are not zero"),
        (np.array([3**40, 0], np.uint64), "a word holds more than 40 digits of base 3"),
    ]:
        with refused("contribution.malformed", says):
            unpack_levels(wrong, 1, 41)
