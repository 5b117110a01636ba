"""What arrives and what memory it takes follows from what was measured; how fast it was is never asserted."""

from __future__ import annotations

import shutil
from collections import namedtuple
from typing import Any

import pytest

from ferret_bench.uploads import PART, QUICK, Benchmark
from tests.refusals import refused


def test_what_does_not_fit_on_the_disk_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    usage: Any = namedtuple("usage", ["free"])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(PART))
    benchmark = Benchmark()
    document = benchmark.run(lambda line: None, quick=True)
    assert all("8 MiB free" in case["missing"] for case in document["cases"])
    assert {found["holds"] for found in document["bounds"].values()} == {None}
    _, missing, _ = benchmark.tables(document)
    assert len(missing.rows) == len(QUICK)


@pytest.mark.slow
def test_a_site_that_does_not_end_in_time_is_given_up() -> None:
    with refused("experiment.timeout"):
        Benchmark().run(lambda line: None, quick=True, max_seconds=0.2)
