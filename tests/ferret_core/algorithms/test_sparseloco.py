from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ferret_core import catalog
from ferret_core.algorithms import sparseloco
from ferret_core.algorithms._base import Weighted
from ferret_core.algorithms.configs._chunks import (
    Chunks,
    cut,
    from_chunks,
    in_chunks,
    largest_of_each,
    pack_positions,
    unpack_positions,
)
from ferret_core.models.parameters import shapes
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Array, Contribution
from ferret_core.replica.replica import Replica
from ferret_core.sample import model_path
from ferret_core.simulate import simulate
from tests.algorithms import METADATA
from tests.refusals import refused

SpecFactory = Callable[..., ExperimentSpec]
SHAPES = ((130, 96), (97,), (3, 4, 5))
D = 130 * 96 + 97 + 60


def algorithm_of(**options: Any) -> sparseloco.Algorithm:
    return sparseloco.Algorithm(sparseloco.Config(**options))


def chunks_of(k: float, *tensors: tuple[int, ...]) -> Chunks:
    return Chunks(cut({str(number): shape for number, shape in enumerate(tensors)}), round(k * 1024))


def normal(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=count).astype(np.float32)


def test_sides_are_cut_by_their_largest_divisors_up_to_64() -> None:
    found = [(tensor.down, tensor.across, tensor.height, tensor.width) for tensor in chunks_of(1, *SHAPES).cuts]
    assert found == [(5, 2, 26, 48), (1, 97, 1, 1), (1, 1, 3, 20)]


def test_chunk_order_is_undone_and_keeps_a_chunk_together() -> None:
    cuts, update = chunks_of(1, *SHAPES).cuts, np.arange(D, dtype=np.float32)
    ordered = in_chunks(update, cuts)
    np.testing.assert_array_equal(from_chunks(ordered, cuts), update)
    np.testing.assert_array_equal(ordered[: 26 * 48].reshape(26, 48), update[: 130 * 96].reshape(130, 96)[:26, :48])


@pytest.mark.parametrize("k", [1, 1.5, 3.25, 64, 4096])
def test_the_largest_of_every_chunk_survive_their_code(k: float) -> None:
    chunks, ordered = chunks_of(k, *SHAPES), normal(D)
    assert sum(chunks.entries) == chunks.counts.sum()
    places = largest_of_each(ordered, chunks)
    for start, size, count in zip(chunks.starts, chunks.sizes, chunks.counts, strict=True):
        sent = places[(places >= start) & (places < start + size)] - start
        expected = np.sort(np.argsort(-np.abs(ordered[start : start + size]), kind="stable")[:count])
        np.testing.assert_array_equal(sent, expected)
    np.testing.assert_array_equal(unpack_positions(pack_positions(places, chunks), chunks), places)


def test_every_bin_is_decoded_as_the_mean_of_what_is_in_it() -> None:
    """μ = 0 and σ = √14, so that a bin is 5.6 wide, and 0 in the middle of the third."""
    bins, means = sparseloco._quantised(np.array([-6, 2, -2, 1, 0, 5], np.float32))
    assert bins.tolist() == [1, 2, 2, 2, 2, 3]
    assert means.tolist() == [0, -6, 0.25, 5]


@pytest.mark.slow
def test_it_learns_on_the_demo_model(toy_spec: SpecFactory) -> None:
    options = {"density": 1 / 256, "local": {"learning_rate": 3e-3, "steps": 2}}
    model, evaluation = {"source": str(model_path())}, {"every": 2, "examples": 6, "generate_examples": 0}
    base, *_, last = simulate(
        toy_spec("sparseloco", options=options, rounds=2, model=model, evaluation=evaluation)
    ).rounds
    assert last.metrics["eval_loss"] < base.metrics["eval_loss"] - 0.3


def test_nothing_is_lost_and_the_memory_fades(lab: Any, weights: Any) -> None:
    model, algorithm = weights(*SHAPES), algorithm_of(density=1 / 512)
    state, memory, update = algorithm.init_state(model, 0), {"error": normal(D, 1)}, normal(D, 2)
    sent = lab.participate(algorithm, model, state, update, memory)
    moved, _ = lab.update(algorithm, model, state, Weighted(1.0, sent.contribution))
    expected = update + np.float32(0.95) * memory["error"]
    np.testing.assert_allclose(moved + sent.memory["error"], expected, rtol=0, atol=1e-5)


def test_a_place_is_averaged_over_those_that_sent_it_and_a_long_tensor_is_clipped_to_the_median(
    lab: Any, weights: Any
) -> None:
    model, algorithm = weights((64,)), algorithm_of(density=1 / 4096)
    state = algorithm.init_state(model, 0)
    updates = [np.eye(64, dtype=np.float32)[place] * value for place, value in [(3, 1), (3, 3), (9, 8)]]
    received = [Weighted(1.0, lab.participate(algorithm, model, state, update).contribution) for update in updates]
    moved, _ = lab.update(algorithm, model, state, *received)
    assert {int(place): float(moved[place]) for place in np.flatnonzero(moved)} == {3: 2.0, 9: 3.0}


@pytest.mark.parametrize("budget", [2_000, 9_000])
def test_a_budget_is_filled_and_kept(toy_spec: SpecFactory, budget: int) -> None:
    each = simulate(toy_spec("sparseloco", options={"bytes_per_round": budget}, rounds=1)).rounds[1].bytes_up / 3
    assert budget - 8 < each <= budget + METADATA


def test_options_exclude_each_other_and_survive_being_written_out() -> None:
    assert sparseloco.Config().density == 1 / 64
    assert sparseloco.Config(bytes_per_round=500).density is None
    written = sparseloco.Config(bytes_per_round=500).model_dump()
    assert sparseloco.Config.model_validate(written).bytes_per_round == 500
    with pytest.raises(ValueError, match=r"density = 0\.5 and bytes_per_round = 100 exclude each other"):
        sparseloco.Config(density=0.5, bytes_per_round=100)


def test_a_budget_for_less_than_one_entry_of_a_chunk_is_refused(toy_spec: SpecFactory) -> None:
    with refused("spec.invalid", "the smallest possible is") as caught:
        Replica.load(catalog.resolve(toy_spec("sparseloco", options={"bytes_per_round": 50})).spec)
    assert (caught.value.code, caught.value.errors[0].field) == ("spec.invalid", "algorithm.bytes_per_round")


def test_places_and_bins_that_nobody_would_send_are_refused(lab: Any, weights: Any) -> None:
    model, algorithm = weights(*SHAPES), algorithm_of(density=3 / 4096)
    sent = lab.participate(algorithm, model, algorithm.init_state(model, 0), normal(D)).contribution
    positions, bins = sent.arrays["positions"], sent.arrays["bins"]
    for changed, field, says in [
        ({"positions": np.full_like(positions, 0)}, "positions", "do not ascend"),
        ({"positions": np.full_like(positions, 255)}, "positions", "is a place beyond its chunk"),
        ({"bins": bins | np.uint8(1)}, "bins", "are not zero"),
    ]:
        with refused("contribution.malformed", says) as caught:
            algorithm.config.check(Contribution(sent.meta, {**sent.arrays, **changed}), lab.task, shapes(model))
        assert (caught.value.code, caught.value.errors[0].field) == ("contribution.malformed", field)
