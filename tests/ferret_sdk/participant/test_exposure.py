"""What a contribution can reveal, as people are asked about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.algorithms.configs.ferret import Config
from ferret_core.catalog import ResolvedExperiment
from ferret_core.protocol.spec import ExperimentSpec
from ferret_sdk.participant.exposure import Exposure

SHAPES = {"embedding": (1000, 300), "norm": (3000,)}


def of(toy_spec: Callable[..., ExperimentSpec], examples: int = 1000, algorithm: str = "ferret", **options: Any):
    local = {"steps": 10, "batch_size": 2, "accumulation": 4} | options.pop("local", {})
    spec = toy_spec(algorithm, options={"local": local, **options})
    return Exposure.of(ResolvedExperiment.of(spec), SHAPES, examples)


def test_the_usual_contribution_to_a_large_model_gives_no_reason(toy_spec) -> None:
    found = of(toy_spec, bytes_per_round=200)
    assert (found.examples, found.sequences, found.whole_blocks, found.separate) == (80, 80, 0, True)
    assert found.share < 0.1
    assert found.reasons == []


def test_noise_that_hides_records_is_the_only_reason_and_only_if_it_is_weak(toy_spec) -> None:
    """A site with 1,000 examples draws this many sequences on average."""
    for epsilon, reasons in ((8.0, 0), (50.0, 1)):
        privacy = {"unit": "example", "epsilon": epsilon, "batch": 10, "records_least": 500}
        spec = toy_spec("ferret", options={"whole_up_to": 10**6, "bytes_per_round": 10**6}, privacy=privacy)
        found = Exposure.of(ResolvedExperiment.of(spec), SHAPES, 1000)
        assert (found.sequences, found.epsilon, len(found.reasons)) == (20, epsilon, reasons)


def test_one_step_on_one_example_with_every_coordinate(toy_spec) -> None:
    local = {"steps": 1, "batch_size": 1, "accumulation": 1}
    found = of(toy_spec, local=local, whole_up_to=10**6, bytes_per_round=10**6)
    assert (found.examples, found.share, found.whole_blocks) == (1, 1.0, 2)
    assert len(found.reasons) == 3


@pytest.mark.parametrize("allocation", ["fixed", "uniform", "norm", "optimal", "curvature"])
def test_the_share_is_that_of_the_block_with_most_coordinates(toy_spec, allocation: str) -> None:
    found = of(toy_spec, bytes_per_round=None, K=1000, allocation=allocation)
    config = Config(K=1000, allocation=allocation)
    blocks = config.cut(SHAPES)
    counts = config.allocate([block.size**0.5 for block in blocks], blocks)
    assert found.share == max(count / block.size for count, block in zip(counts, blocks, strict=True))


def test_of_sparse_coordinates_only_the_sent_ones_count(toy_spec) -> None:
    found = of(toy_spec, bytes_per_round=200, coordinates="sparse_sign")
    config = Config(bytes_per_round=200, coordinates="sparse_sign")
    assert config.total(config.cut(SHAPES)) > 14_000
    assert found.share < 0.01


def test_a_dense_update_has_every_coordinate_and_only_its_mean_is_published(toy_spec) -> None:
    found = of(toy_spec, algorithm="fedavg")
    assert (found.share, found.whole_blocks, found.separate) == (1.0, 2, False)


@pytest.mark.parametrize(
    ("algorithm", "options", "whole"),
    [
        ("ferret", {"coordinates": "float32", "K": 303_000, "bytes_per_round": None}, 2),
        ("ferret", {"coordinates": "float32", "K": 2000, "bytes_per_round": None}, 0),
        ("scaffold", {}, 2),
        ("signsgd", {}, 2),
        ("qsgd", {}, 2),
        ("powersgd", {}, 2),  # small tensors are sent as they are
        ("topk", {"fraction": 1.0}, 2),
        ("topk", {"fraction": 0.01}, 0),
        ("sparseloco", {}, 0),
        ("fedkseed", {}, 0),
    ],
)
def test_a_block_with_a_coordinate_for_each_weight_is_whole(toy_spec, algorithm, options, whole) -> None:
    assert of(toy_spec, algorithm=algorithm, **options).whole_blocks == whole


def test_examples_are_those_of_the_site_where_it_has_few(toy_spec) -> None:
    assert of(toy_spec, examples=3).examples == 3


def test_perturbations_count_as_passes(toy_spec) -> None:
    assert of(toy_spec, algorithm="fedkseed", local={"perturbations": 5}).sequences == 400
