from __future__ import annotations

import sys

import pytest

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
