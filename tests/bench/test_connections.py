"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import json

import pytest

from ferret_bench.connections import QUICK, QUICK_REQUESTS, Benchmark


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_honest_requests_are_answered_beside_every_crowd() -> None:
    benchmark, said = Benchmark(), list[str]()
    document = benchmark.run(said.append, quick=True)
    json.dumps(document, allow_nan=False)
    assert len(said) == len(QUICK)
    for case, found in zip(QUICK, document["cases"], strict=True):
        assert {name: found[name] for name in case._fields} == case._asdict()
        assert found["asked"] == found["answered"] == QUICK_REQUESTS
        assert 0 < found["ms"]["p50"] <= found["ms"]["p99"] <= found["ms"]["max"]
        assert found["log_bytes"] < 50_000
    times, bounds = benchmark.tables(document)
    assert len(times.rows) == len(QUICK)
    assert "small sizes" in bounds.title
