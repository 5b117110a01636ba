"""A grid of two algorithms on the toy task, and the files that official datasets would have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ferret_bench.reproduce.reruns import settings
from ferret_bench.reproduce.reruns.grid import Asked, Grid, grid
from ferret_bench.reproduce.reruns.quantity import BYTES_UP, EVAL_LOSS, ROUGE_L, TRAIN_LOSS
from ferret_bench.reproduce.reruns.records import Record, RoundRecord
from ferret_bench.reproduce.reruns.studies import Panel, Study

QUICK = [
    "rounds=2",
    "participants.simulated=2",
    "evaluation.max_new_tokens=8",
    "algorithm.local.learning_rate=1e-2",
    "algorithm.local.steps=2",
    "algorithm.local.accumulation=1",
]


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(
        title="Toy",
        lead="Two rows on the toy task.",
        rows=("ferret", "fedavg"),
        datasets=("jsonl",),
        quantities=(ROUGE_L, EVAL_LOSS, BYTES_UP),
        panels=(Panel("Training", TRAIN_LOSS), Panel("Frontier", EVAL_LOSS, BYTES_UP, logarithmic=True)),
        seeds=2,
    )


@pytest.fixture(scope="module")
def asked(tiny_model_dir: Path, toy_data: tuple[Path, Path]) -> Asked:
    return Asked(models=(str(tiny_model_dir),), data=toy_data[0].parent, examples=4, generate=2)


@pytest.fixture(scope="module")
def toy_grid(study: Study, asked: Asked) -> Callable[..., Grid]:
    """``toy_grid(["fedavg.rounds=1"])``: two rows, one column, two seeds."""

    def make(assignments: Sequence[str] = (), studied: Study = study, file: Path | None = None) -> Grid:
        known = settings.read(file, [*QUICK, *assignments], studied, absolute_paths=True)
        return grid(studied, known, asked)

    return make


@pytest.fixture(scope="module")
def ended() -> Callable[..., Record]:
    """``ended(cell, [3.0, 2.0])``: a run of that cell with these evaluation losses, from the base model on."""

    def make(cell: Any, losses: Sequence[float], error: dict[str, Any] | None = None) -> Record:
        rounds = [
            RoundRecord(number=n, metrics={"eval_loss": loss, "train_loss": loss}, bytes_up=200 * n, bytes_down=400 * n,
                        participants=2 * (n > 0), accepted=2 * (n > 0))
            for n, loss in enumerate(losses)
        ]  # fmt: skip
        return cell.record("simulate", 1.5, {"server": "toy"}, rounds=rounds, error=error)

    return make
