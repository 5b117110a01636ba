"""Live export of an experiment's metrics to other tools; one module per tool.

Every measured round is one step. Existing steps are not written again, so an interrupted export continues where it
stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Literal, get_args

from ferret_sdk.exporters.base import Destination, reported
from ferret_sdk.service.measured_rounds import MeasuredRound, measured_rounds
from ferret_sdk.service.run import Run

__all__ = ["TOOLS", "Destination", "MeasuredRound", "Tool", "export_metrics"]

Tool = Literal["tensorboard", "mlflow", "wandb", "trackio"]
TOOLS: tuple[Tool, ...] = get_args(Tool)


def export_metrics(
    run: Run,
    to: Tool,
    folder: str | Path | None = None,
    *,
    project: str = "ferret",
    on_round: Callable[[MeasuredRound], None] | None = None,
) -> int:
    """Writes every missing round, follows the experiment to its end, and returns how many rounds were written.

    ``folder`` is the tool's folder, if not the usual one. ``project`` is what the tool groups runs by. Parameters are
    the specification with dotted names. Raises ``dependency.missing`` if the tool is not installed, and
    ``export.failed`` if it refuses something; written rounds stay.
    """
    with reported(to):
        destination: Destination = import_module(f"{__name__}.{to}").open_destination(
            run, None if folder is None else Path(folder).expanduser(), project
        )
    count = 0
    try:
        for row in measured_rounds(run, run.events(), destination.rounds()):
            with reported(to):
                destination.write(row)
            count += 1
            if on_round is not None:
                on_round(row)
    finally:
        with reported(to):
            try:
                run.refresh()
            finally:
                destination.close(run.state)
    return count
