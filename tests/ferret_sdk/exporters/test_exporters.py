from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ExperimentState
from ferret_sdk import exporters
from ferret_sdk.exporters import TOOLS, Tool, export_metrics
from ferret_sdk.exporters.base import flat
from ferret_sdk.service.run import Run
from tests.refusals import refused


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_that_is_not_installed_is_named_with_the_command(
    run: Run, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [tool, *(name for name in sys.modules if name.startswith(f"{tool}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    package = "trackio" if tool == "trackio" else f"ferret-participant[{tool}]"
    with refused("dependency.missing", f"pip install '{package}'"):
        export_metrics(run, tool)


def test_a_specification_becomes_flat_parameters() -> None:
    tree = {"rounds": 3, "algorithm": {"name": "x", "local": {"rate": 0.1, "schedule": None}}, "shares": [1, 2]}
    assert flat(tree) == {"rounds": 3, "algorithm.name": "x", "algorithm.local.rate": 0.1, "shares": "[1, 2]"}


def test_what_is_written_is_kept_if_the_server_goes_away(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[ExperimentState] = []
    written: list[int] = []
    destination = SimpleNamespace(rounds=frozenset, write=lambda row: written.append(row.round), close=closed.append)
    monkeypatch.setattr(
        exporters, "import_module", lambda name: SimpleNamespace(open_destination=lambda *options: destination)
    )

    def gone(row: Any) -> None:
        monkeypatch.setattr(run, "refresh", lambda: (_ for _ in ()).throw(FerretError("server.unreachable", "gone")))
        raise FerretError("server.unreachable", "gone")

    with refused("server.unreachable"):
        export_metrics(run, "wandb", on_round=gone)
    assert (written, closed) == ([0], [run.state])
