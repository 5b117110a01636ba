"""Every benchmark still runs and tells what it measured; how fast anything was is never asserted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ferret_core.discovery import load, names

ELSEWHERE = {"edge"}


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.redis
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(set(names("ferret_bench")) - ELSEWHERE))
def test_a_quick_run_makes_a_document_and_tables(name: str, both_databases: None) -> None:
    benchmark: Any = load("ferret_bench", name, "benchmark").Benchmark()
    said = list[str]()
    document = benchmark.run(said.append, quick=True)
    json.dumps(document, allow_nan=False)
    assert any(table.rows for table in benchmark.tables(document))
    exact = [bound for bound in document.get("bounds", {}).values() if bound["bound"] == "<= 0"]
    assert all(bound["holds"] for bound in exact), "what must not happen at all"
