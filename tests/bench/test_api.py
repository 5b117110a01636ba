"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from ferret_bench import _api_page as page
from ferret_bench.api import QUICK, Benchmark
from ferret_cli.stack import broker


@pytest.mark.timeout(120)
def test_many_participants_are_answered(need: Callable[[bool, str], None]) -> None:
    need(broker.find_program() is not None, "a broker: apt-get install redis-server")
    benchmark, said = Benchmark(), list[str]()
    document = benchmark.run(said.append, quick=True)
    json.dumps(document, allow_nan=False)
    assert [case["dripping"] for case in document["cases"]] == [0, QUICK.dripping, 0]
    for case in document["cases"]:
        assert case["server_errors"] == 0, case
        assert case["uploads"]["statuses"] == {"201": case["uploads"]["answered"]}
        assert case["uploads"]["answered"] >= 0.8 * case["rates"]["uploads"] * QUICK.case_seconds
        assert set(case["polls"]["statuses"]) == {"200", "304"}
        assert 0 < case["ms"]["p50"] <= case["ms"]["p99"] <= case["ms"]["max"]
    answers, costs, bounds = benchmark.tables(document)
    assert len(answers.rows) == 6
    assert len(costs.rows) == 3
    assert "small sizes" in bounds.title
    check_page(document)


def check_page(document: dict[str, Any]) -> None:
    """A run is kept as a page, unless it says little."""
    idle = {**document, "load": {"before": [0.1, 5, 5], "after": [2, 5, 5]}}
    assert "--quick" in (page.unfit(idle) or "")
    full = {**idle, "asked": {**document["asked"], "quick": False}}
    assert page.unfit(full) is None
    assert "load was 0.70" in (page.unfit({**full, "load": {"before": [0.7, 0, 0], "after": [0, 0, 0]}}) or "")
    text = page.page(full)
    assert f"{QUICK.participants} enrolled participants" in text
    assert "| p99_ms |" in text


def test_a_run_that_says_little_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(json.dumps({"asked": {"quick": True}})))
    assert page.main([str(tmp_path)]) == 1
    assert "nothing is written" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
