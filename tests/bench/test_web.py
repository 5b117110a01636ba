"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ferret_bench.web import TABS, Benchmark

WEB = Path(__file__).parents[2] / "web"


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_everything_that_has_a_bound_is_measured(need: Callable[[bool, str], None]) -> None:
    need(shutil.which("chromium") is not None, "no Chromium on PATH: apt-get install chromium")
    need((WEB / "node_modules").is_dir(), "npm ci in web/")
    benchmark, said = Benchmark(), list[str]()
    document = benchmark.run(said.append, quick=True)
    json.dumps(document, allow_nan=False)
    assert document["javascript"]["compressed"] == 1
    assert 100_000 < document["javascript"]["gzip_bytes"] < document["javascript"]["bytes"]
    assert 100_000 < document["javascript"]["first_load_gzip_bytes"] < document["javascript"]["gzip_bytes"]
    for measured in ("first_curve", "lines_ms", "heat_map_ms"):
        assert 0 < document[measured]["p50"] <= document[measured]["max"]
    assert [found["tab"] for found in document["memory"]] == list(TABS)
    assert all(found["events"] > 0 and found["start"] > 1_000_000 for found in document["memory"])
    assert None not in [found["holds"] for found in document["bounds"].values()]
    assert "small sizes" in benchmark.tables(document)[-1].title
