"""People read figures that were measured."""

from __future__ import annotations

import json
from pathlib import Path

from ferret_core.experiment.readers import LAST_AUDIT

RUN = Path(__file__).parents[3] / "docs/results/leakage/leakage.json"


def test_the_last_audit_is_that_of_the_committed_run() -> None:
    run = json.loads(RUN.read_text(encoding="utf-8"))
    audited = {row["noise"]: row["audited"] for row in run["audits"] if row["epsilon"] == 3}
    assert (
        f"on a small model {run['sizes']['audit']['canaries']:,} canaries at ε = 3 proved ε ≥ {audited[True]:.2f}, "
        f"and ε ≥ {audited[False]:.2f} without the noise"
    ) == LAST_AUDIT
