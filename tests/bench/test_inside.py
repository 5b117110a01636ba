"""The share of a fold that looking into it takes follows from what was measured; how fast it was is never asserted."""

from __future__ import annotations

import json

import pytest

from ferret_bench.inside import ALGORITHMS, PARTICIPANTS, Benchmark


def silent(line: str) -> None:
    assert line


def test_each_way_to_compare_is_measured_against_its_fold() -> None:
    document = Benchmark().run(silent, quick=True)
    assert [run["algorithm"] for run in document["runs"]] == list(ALGORITHMS)
    for run in document["runs"]:
        assert run["participants"] == PARTICIPANTS
        assert 0 < run["look_seconds"] < run["fold_seconds"]
        assert run["share"] == pytest.approx(run["look_seconds"] / (run["fold_seconds"] - run["look_seconds"]))
    assert document["bounds"]["share"]["value"] == max(run["share"] for run in document["runs"])
    json.dumps(document, allow_nan=False)
    assert len(Benchmark().tables(document)) == 2
