"""``python -m tests.helm``: renders and lints the chart with Helm's own engine.

It reads cases as JSON, values by name, and writes what each becomes: ``rendered``, the templates by file, or the
``refusal``. The engine is a library with Go's runtime in it, whose threads no test's process should have.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

CHART = Path(__file__).parents[1] / "deploy/helm/ferret"
RELEASE, NAMESPACE = "ferret", "hospital"


def main() -> None:
    helm_python = import_module("helm_python")  # some machines have no build of it
    cases: dict[str, dict[str, Any]] = json.load(sys.stdin)
    found: dict[str, dict[str, Any]] = {}
    with helm_python.Chart.load(CHART) as chart:
        for name, values in cases.items():
            try:
                rendered = chart.render(values, name=RELEASE, namespace=NAMESPACE)
                found[name] = {"rendered": rendered, "lint": helm_python.lint(CHART, values, strict=True)}
            except helm_python.HelmError as error:
                found[name] = {"refusal": str(error)}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
