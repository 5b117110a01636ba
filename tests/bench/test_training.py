"""What the document says follows from what was measured; how fast or how small anything was is never asserted."""

from __future__ import annotations

import json

import pytest
import torch

from ferret_bench import training
from ferret_bench._projection.llama import SMALL as SIZES
from ferret_bench._projection.llama import TOY
from ferret_bench._training.footprint import GIVEN_BACK, Arguments, in_a_fresh_process
from ferret_bench._training.ways import SMALL, WAYS
from ferret_bench.measure.clock import Turns
from ferret_bench.training import BOUNDED, Benchmark
from ferret_core.training.config import LocalConfig

TOY_BYTES = 4 * TOY.elements
FIFTEEN_MILLION = SIZES[1]
"""Large beside what a heap keeps for itself."""


def silent(line: str) -> None:
    assert line


@pytest.fixture(scope="module")
def document() -> dict:
    return Benchmark().run(silent, quick=True)


def test_every_way_is_one_that_a_participant_may_choose() -> None:
    assert set(BOUNDED) <= set(WAYS)
    for options in WAYS.values():
        LocalConfig.model_validate({"accumulation": 1, **options})
    assert 60e6 < SMALL.elements < 100e6


def test_each_way_has_its_memory_and_its_time(document) -> None:
    (run,) = document["runs"]
    assert (run["device"], run["model"], run["parameters"]) == ("cpu", "LLaMA-toy", TOY.elements)
    assert list(run["ways"]) == list(WAYS)
    for name, way in run["ways"].items():
        weights = TOY_BYTES // 2 if "pure bf16" in name else TOY_BYTES
        assert way["times_weights"] == pytest.approx((way["peak_bytes"] - weights) / weights)
        assert way["seconds_per_step"] > 0
    assert run["ways"]["sgd"]["times_sgd"] == 1.0
    json.dumps(document, allow_nan=False)


def test_bounds_are_on_ratios_of_what_was_measured(document) -> None:
    ways = document["runs"][0]["ways"]
    found = {key: (bound["value"], bound["bound"]) for key, bound in document["bounds"].items()}
    assert found == {
        "in_backward_copies": (ways["sgd in backward, checkpointed"]["times_weights"], "< 2"),
        "in_backward_vs_sgd": (ways["sgd in backward"]["peak_bytes"] / ways["sgd"]["peak_bytes"], "< 1"),
    }


def test_what_has_no_bound_is_left_out_on_request() -> None:
    (run,) = Benchmark().run(silent, bounds=True, quick=True)["runs"]
    assert tuple(run["ways"]) == BOUNDED


def test_a_peak_in_a_process_of_its_own_holds_copy_and_originals() -> None:
    arguments = Arguments(FIFTEEN_MILLION, WAYS["sgd"], 16, "cpu", 1)
    peak = in_a_fresh_process(arguments, GIVEN_BACK)
    assert peak is None or peak > 3 * arguments.weight_bytes, "originals, copy, gradients"


def test_what_does_not_fit_or_takes_too_long_is_skipped_with_the_reason(monkeypatch) -> None:
    late = Benchmark().run(silent, quick=True, bounds=True, max_seconds=0)
    assert {way["skipped"] for way in late["runs"][0]["ways"].values()} == {"no time is left: raise --max-seconds"}
    monkeypatch.setattr("ferret_bench.measure.memory.available_bytes", lambda device: 10**6)
    full = Benchmark().run(silent, quick=True, bounds=True)
    assert all("of memory" in way["skipped"] for way in full["runs"][0]["ways"].values())
    assert {bound["holds"] for bound in full["bounds"].values()} == {None}
    table, _ = Benchmark().tables(full)
    assert table.rows[0][0].startswith("sgd: needs")


def test_without_gradient_descent_nothing_is_timed() -> None:
    adam = Arguments(TOY, WAYS["adam"], 16, "cpu", torch.get_num_threads())
    assert training._times({"adam": adam}, Turns(2, 2)) == {}


def test_tables_for_people(document) -> None:
    ways, bounds = Benchmark().tables(document)
    assert [row[0] for row in ways.rows] == list(WAYS)
    assert "small sizes" in bounds.title
    assert len(bounds.rows) == 2
