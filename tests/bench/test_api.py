"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ferret_bench.api import QUICK, Benchmark
from ferret_cli.stack import broker


@pytest.mark.timeout(120)
def test_many_participants_are_answered(need: Callable[[bool, str], None]) -> None:
    need(broker.find_program() is not None, "a broker: apt-get install redis-server")
    benchmark, said = Benchmark(), list[str]()
    document = benchmark.run(said.append, quick=True)
    json.dumps(document, allow_nan=False)
    assert [case["dripping"] for case in document["cases"]] == [0, QUICK.dripping]
    for case in document["cases"]:
        assert case["server_errors"] == 0, case
        assert case["uploads"]["statuses"] == {"201": case["uploads"]["answered"]}
        assert case["uploads"]["answered"] >= 0.8 * QUICK.uploads * QUICK.seconds
        assert set(case["polls"]["statuses"]) == {"200", "304"}
        assert 0 < case["ms"]["p50"] <= case["ms"]["p99"] <= case["ms"]["max"]
    answers, costs, bounds = benchmark.tables(document)
    assert len(answers.rows) == 4
    assert len(costs.rows) == 2
    assert "small sizes" in bounds.title
