"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import json

import pytest

from ferret_bench.bombs import CANCELLED, Benchmark


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_bomb_ends_with_a_reason_and_the_control_completes() -> None:
    benchmark, said = Benchmark(), list[str]()
    document = benchmark.run(said.append)
    json.dumps(document, allow_nan=False)
    codes = {bomb["bomb"]: bomb["code"] for bomb in document["bombs"]}
    assert list(codes) == said
    assert codes.pop(CANCELLED) == "cancelled"
    assert set(codes.values()) == {"dataset.invalid", "spec.invalid", "memory.exhausted"}
    assert all(bomb["control_seconds"] > 0 and bomb["peak_bytes"] > 0 for bomb in document["bombs"])
    table, _ = benchmark.tables(document)
    assert len(table.rows) == len(said)
