"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

import asyncio
import json
import socket
from io import StringIO
from pathlib import Path

import pytest

from ferret_bench import _api_page as page
from ferret_bench._api import load
from ferret_bench._api.participants import Cohort, Member
from ferret_bench.api import _errors


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


def test_a_request_that_is_never_answered_is_an_error_and_as_slow_as_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "PATIENCE_SECONDS", 0.2)
    members = [Member(f"par_{number:016x}", f"site-{number}", "token") for number in range(2)]

    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        asking = load.Load(silent.getsockname()[1], [Cohort("exp_1", members[:1], members[1:])])
        asyncio.run(asking.run(polls=40, uploads=20, seconds=0.2))
    found = load._figures(asking)
    for kind in ("polls", "uploads"):
        assert _errors(found[kind]["statuses"]) == found[kind]["statuses"]["TimeoutError"] > 0
        assert (found[kind]["answered"], found[kind]["ms"]["p50"]) == (0, 200)
