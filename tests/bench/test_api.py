"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest

from ferret_bench import _api_page as page


def test_a_run_is_kept_if_it_is_whole_and_the_machine_was_idle() -> None:
    document = {"asked": {"quick": True}, "load": {"before": [0.1, 5, 5], "after": [2, 5, 5]}}
    full = {**document, "asked": {"quick": False}}
    busy = {**full, "load": {"before": [0.7, 0, 0], "after": [0, 0, 0]}}
    assert "--quick" in (page.unfit(document) or "")
    assert page.unfit(full) is None
    assert "load was 0.70" in (page.unfit(busy) or "")


def test_a_run_that_says_little_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(json.dumps({"asked": {"quick": True}})))
    assert page.main([str(tmp_path)]) == 1
    assert "nothing is written" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
