"""TensorBoard's event files. A round is one record, so it is written completely or not at all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ferret_core.protocol.states import ExperimentState
from ferret_sdk.exporters.base import finite, flat, required
from ferret_sdk.service.measured_rounds import MeasuredRound
from ferret_sdk.service.run import Run

FOLDER = Path("runs")
"""The default folder of TensorBoard's examples."""
PACKAGE = "ferret-participant[tensorboard]"
NO_LIMIT = 0
TAGS = "tags"


def open_destination(run: Run, folder: Path | None, project: str) -> TensorBoard:
    """Opens the experiment's folder, in the folder ``project`` of ``folder``."""
    name = re.sub(r"\W+", "-", str(run.experiment.spec.get("name", ""))).strip("-")
    return TensorBoard((folder or FOLDER) / project / f"{name}-{run.id}", run)


class TensorBoard:
    """The event files in ``folder``. Every start of the export adds one."""

    def __init__(self, folder: Path, run: Run) -> None:
        events = required("tensorboard.compat.proto.event_pb2", PACKAGE)
        summaries = required("tensorboard.compat.proto.summary_pb2", PACKAGE)
        self._event: Any = events.Event
        self._summary: Any = summaries.Summary
        self._there = rounds_in(folder)
        writers = required("tensorboard.summary.writer.event_file_writer", PACKAGE)
        self._writer: Any = writers.EventFileWriter(str(folder))
        if not self._there:
            parameters = flat(run.experiment.spec) | {TAGS: ", ".join(run.experiment.tags)}
            hparams = required("tensorboard.plugins.hparams.summary_v2", PACKAGE)
            self._add(hparams.hparams_pb(parameters, trial_id=run.id))

    def rounds(self) -> frozenset[int]:
        return self._there

    def write(self, row: MeasuredRound) -> None:
        values = [self._summary.Value(tag=name, simple_value=value) for name, value in finite(row).items()]
        self._add(self._summary(value=values), row.round, row.time.timestamp())

    def close(self, state: ExperimentState) -> None:
        self._writer.close()

    def _add(self, summary: Any, step: int = 0, time: float | None = None) -> None:
        self._writer.add_event(self._event(summary=summary, step=step, wall_time=time))
        self._writer.flush()


def rounds_in(folder: Path) -> frozenset[int]:
    """Returns the steps of the event files in ``folder``. A truncated record does not count."""
    module = required("tensorboard.backend.event_processing.event_accumulator", PACKAGE)
    found = module.EventAccumulator(str(folder), size_guidance={module.SCALARS: NO_LIMIT})
    if not folder.is_dir():
        return frozenset()
    found.Reload()
    return frozenset(event.step for tag in found.Tags()[module.SCALARS] for event in found.Scalars(tag))
