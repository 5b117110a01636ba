"""Trackio, in its database on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ExperimentState
from ferret_sdk.exporters.base import finite, flat, required
from ferret_sdk.service.measured_rounds import MeasuredRound
from ferret_sdk.service.run import Run

PACKAGE = (
    "trackio"  # not an extra of ours: its requirements would change the versions that the service's tests run with
)
FOLDER = "TRACKIO_DIR"
"""Environment variable that Trackio reads on import."""


def open_destination(run: Run, folder: Path | None, project: str) -> Trackio:
    if folder is not None:
        os.environ[FOLDER] = str(folder.resolve())
        used = Path(required("trackio.utils", PACKAGE).TRACKIO_DIR)
        if used != folder.resolve():
            message = f"Trackio was imported before and writes to {used}: restart Python, or leave the folder out"
            raise FerretError.of_field("request.invalid", "folder", str(folder), message)
    return Trackio(run, project)


class Trackio:
    """A run named after our experiment's id, because Trackio finds runs by name."""

    def __init__(self, run: Run, project: str) -> None:
        module, stored = required("trackio", PACKAGE), required("trackio.sqlite_storage", PACKAGE)
        told = run.experiment
        rows: list[Any] = stored.SQLiteStorage.get_logs(project, run.id)
        self._there = frozenset(int(row["step"]) for row in rows)
        config = flat(told.spec) | {"experiment": told.name, "tags": ", ".join(told.tags)}
        self._run: Any = module.init(
            project, name=run.id, config=config, resume="allow", embed=False, auto_log_gpu=False, auto_log_cpu=False
        )

    def rounds(self) -> frozenset[int]:
        return self._there

    def write(self, row: MeasuredRound) -> None:
        self._run.log(finite(row), step=row.round)

    def close(self, state: ExperimentState) -> None:
        self._run.finish()
