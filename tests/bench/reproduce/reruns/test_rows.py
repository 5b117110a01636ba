"""Every row of the paper's tables, as it ships, for a round on a pretrained model: each makes it better.

The model is the demo's with the quickstart's data; another one, such as stories260K, where ``FERRET_TEST_MODEL`` names
its folder.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferret_bench.reproduce.reruns import settings, studies
from ferret_bench.reproduce.reruns.grid import Asked, grid
from ferret_bench.reproduce.reruns.settings import layered, shipped
from ferret_core import sample
from ferret_core.protocol.spec_file import Tree
from ferret_core.simulate import simulate

DATA = Path(__file__).parents[4] / "ferret_core/sample/quickstart.jsonl"
MODEL = os.environ.get("FERRET_TEST_MODEL", str(sample.model_path()))
OVER = [
    f"jsonl.dataset.train={DATA}",
    "participants.simulated=1",
    "evaluation.examples=16",
    "evaluation.generate_examples=0",
]


ROWS = shipped("rows.toml")


def cases() -> list[Any]:
    """Every row as it is, and with the rates that it has for a dataset alone."""
    found: list[Any] = []
    for row, entry in ROWS.items():
        if "label" in entry:
            found.append(pytest.param(row, {}, id=row))
            for dataset in sorted(shipped("datasets.toml").keys() & entry.keys()):
                if {"algorithm", "server"} & entry[dataset].keys():
                    found.append(pytest.param(row, entry[dataset], id=f"{row}.{dataset}"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("row", "rates"), cases())
def test_a_round_lowers_the_loss(row: str, rates: Tree) -> None:
    study = replace(studies.study("table", "cost"), parts={})
    known = settings.read(None, OVER, study, absolute_paths=True)
    known = replace(known, rows={**known.rows, row: layered([known.rows[row], rates])})
    asked = Asked(models=[MODEL], rows=(row,), datasets=("jsonl",), seeds=1, rounds=1)
    (cell,) = grid(study, known, asked).cells
    base, after = simulate(cell.spec).rounds
    assert after.metrics["eval_loss"] < base.metrics["eval_loss"]
