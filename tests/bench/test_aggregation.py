"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import json

import pytest

from ferret_bench.aggregation import BOUNDED, CASES, MEMORY, Benchmark


@pytest.mark.parametrize("bounds", [True, False])
def test_every_way_moves_the_model_alike(bounds: bool) -> None:
    benchmark, said = Benchmark(), list[str]()
    document = benchmark.run(said.append, bounds=bounds, quick=True)
    json.dumps(document, allow_nan=False)
    ways = document["ways"]
    assert len(ways) == (3 if bounds else 9)
    for case in CASES:
        assert len({way["digest"] for name, way in ways.items() if name.startswith(case)}) <= 1
    assert document["bounds"]["move_vs_copy"]["value"] == ways[BOUNDED]["ratio"]
    assert document["bounds"]["extra_bytes"]["value"] == max(
        way["extra_bytes"] for name, way in ways.items() if MEMORY not in name
    )
    assert document["bounds"]["digests_differ"] == {"value": 0, "bound": "<= 0", "holds": True}
    rounds, storing, bounded = benchmark.tables(document)
    assert [len(table.rows) for table in (rounds, storing, bounded)] == [len(ways), 1 if bounds else 2, 3]
