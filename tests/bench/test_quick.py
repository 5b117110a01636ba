"""Every benchmark still runs and tells what it measured; how fast anything was is never asserted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferret_core.discovery import load, names

ELSEWHERE = {"edge"}
WEB = Path(__file__).parents[2] / "web"


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.redis
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(set(names("ferret_bench")) - ELSEWHERE))
def test_a_quick_run_makes_a_document_and_tables(
    name: str, need: Callable[[bool, str], None], both_databases: None
) -> None:
    if name == "web":
        need(shutil.which("chromium") is not None, "no Chromium on PATH: apt-get install chromium")
        need((WEB / "node_modules").is_dir(), "npm ci in web/")
    benchmark: Any = load("ferret_bench", name, "benchmark").Benchmark()
    said = list[str]()
    document = benchmark.run(said.append, quick=True)
    json.dumps(document, allow_nan=False)
    assert any(table.rows for table in benchmark.tables(document))
    exact = [bound for bound in document.get("bounds", {}).values() if bound["bound"] == "<= 0"]
    assert all(bound["holds"] for bound in exact), "what must not happen at all"
