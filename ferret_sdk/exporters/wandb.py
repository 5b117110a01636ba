"""Weights & Biases. WANDB_MODE=offline writes files that `wandb sync` uploads later."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ferret_core.protocol.states import ExperimentState
from ferret_core.system.atomic_files import write_durably
from ferret_sdk.exporters.base import finite, flat, required
from ferret_sdk.service.measured_rounds import MeasuredRound
from ferret_sdk.service.run import Run

PACKAGE = "ferret-participant[wandb]"
FOLDER = Path()
STEP = "round"


def open_destination(run: Run, folder: Path | None, project: str) -> Wandb:
    return Wandb(folder or FOLDER, run, project)


class Wandb:
    """A run with our experiment's id.

    Files that are not uploaded yet cannot be read back, so the written rounds are recorded next to them.
    """

    def __init__(self, folder: Path, run: Run, project: str) -> None:
        module, told = required("wandb", PACKAGE), run.experiment
        (folder / "wandb").mkdir(parents=True, exist_ok=True)
        self._note = folder / "wandb" / f"ferret-{run.id}.json"
        self._there = {int(number) for number in json.loads(self._note.read_text())} if self._note.exists() else set()
        self._run: Any = module.init(
            project=project,
            dir=str(folder),
            id=run.id,
            name=told.name,
            tags=list(told.tags),
            config=flat(told.spec),
            resume=None if os.environ.get("WANDB_MODE") == "offline" else "allow",
            reinit="create_new",
            settings=module.Settings(silent=True, console="off", x_disable_stats=True),
        )
        # The evaluation of a round may come after the next round.
        self._run.define_metric(STEP, hidden=True)
        self._run.define_metric("*", step_metric=STEP)

    def rounds(self) -> frozenset[int]:
        return frozenset(self._there)

    def write(self, row: MeasuredRound) -> None:
        self._run.log({STEP: row.round, "_timestamp": row.time.timestamp(), **finite(row)})
        self._there.add(row.round)
        write_durably(self._note, json.dumps(sorted(self._there)).encode())

    def close(self, state: ExperimentState) -> None:
        self._run.finish(exit_code=int(state in {ExperimentState.FAILED, ExperimentState.CANCELLED}))
