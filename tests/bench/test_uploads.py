"""What arrives and what memory it takes follows from what was measured; how fast it was is never asserted."""

from __future__ import annotations

import json
import shutil
from collections import namedtuple
from typing import Any

import pytest

from ferret_bench.uploads import BOUNDS, COLUMNS, MEBIBYTE, PART, QUICK, Benchmark
from ferret_core.protocol.errors import FerretError


@pytest.mark.timeout(120)
def test_uploads_arrive_whole_across_a_broken_link_and_memory_does_not_grow_with_them() -> None:
    benchmark, said = Benchmark(), list[str]()
    document = benchmark.run(said.append, quick=True)
    json.dumps(document, allow_nan=False)
    assert len(said) == len(QUICK)
    for mebibytes, case in zip(QUICK, document["cases"], strict=True):
        assert (case["mebibytes"], case["missing"], case["accepted"]) == (mebibytes, None, True)
        assert 0 < case["size"] - mebibytes * MEBIBYTE < PART
        assert 0 < case["resent_bytes"] <= case["part_bytes"] == PART
        assert 0 < case["outage_seconds"] < case["seconds"]
        assert case["idle_bytes"] <= case["api_bytes"]
        assert case["site_bytes"] > 0
    assert {name: found["holds"] for name, found in document["bounds"].items()} == dict.fromkeys(BOUNDS, True)
    shown, bounds = benchmark.tables(document)
    assert [len(row) for row in shown.rows] == [len(COLUMNS)] * len(QUICK)
    assert "small sizes" in bounds.title


def test_what_does_not_fit_on_the_disk_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    usage: Any = namedtuple("usage", ["free"])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(PART))
    benchmark = Benchmark()
    document = benchmark.run(lambda line: None, quick=True)
    assert all("8 MiB free" in case["missing"] for case in document["cases"])
    assert {found["holds"] for found in document["bounds"].values()} == {None}
    _, missing, _ = benchmark.tables(document)
    assert len(missing.rows) == len(QUICK)


def test_a_site_that_does_not_end_in_time_is_given_up() -> None:
    with pytest.raises(FerretError) as raised:
        Benchmark().run(lambda line: None, quick=True, max_seconds=0.2)
    assert raised.value.code == "experiment.timeout"
