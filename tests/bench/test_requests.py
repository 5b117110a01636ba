"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import json

import pytest

from ferret_bench.requests import FLOODS, Benchmark


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_strangers_are_refused_in_short_and_honest_requests_are_answered_beside_a_flood() -> None:
    benchmark = Benchmark()
    document = benchmark.run(lambda line: None, quick=True)
    json.dumps(document, allow_nan=False)
    assert [case["status"] for case in document["keys"]] == [413, 422]
    assert all(case["bytes"] <= 10_000 for case in document["keys"])
    assert [case["path"] for case in document["floods"]] == list(FLOODS)
    for case in document["floods"]:
        assert 0 < case["ms"]["p50"] <= case["ms"]["p99"] <= case["ms"]["max"]
    assert set(document["floods"][2]["answers"]) <= {"200", "429", "broken"}
    assert len(benchmark.tables(document)) == 3
