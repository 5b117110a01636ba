"""What the document says follows from what was measured; how fast or how small anything was is never asserted."""

from __future__ import annotations

import pytest
import torch

from ferret_bench import training
from ferret_bench._projection.llama import SMALL as SIZES
from ferret_bench._projection.llama import TOY
from ferret_bench.measure.clock import Turns
from ferret_bench.training import GIVEN_BACK, WAYS, Arguments, Benchmark, in_a_fresh_process
from ferret_core.training.config import LocalConfig

FIFTEEN_MILLION = SIZES[1]
"""Large beside what a heap keeps for itself."""


def silent(line: str) -> None:
    assert line


def test_every_way_is_one_that_a_participant_may_choose() -> None:
    for options in WAYS.values():
        LocalConfig.model_validate({"accumulation": 1, **options})


@pytest.mark.slow
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
    assert table.rows[0][0].startswith("a plain loop: needs")


def test_without_gradient_descent_nothing_is_timed() -> None:
    adam = Arguments(TOY, WAYS["adam"], 16, "cpu", torch.get_num_threads())
    assert training._times({"adam": adam}, Turns(2, 2)) == {}
