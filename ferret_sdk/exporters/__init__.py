"""An experiment's metrics, live, in the tool that somebody looks at anyway; one file for each.

Every measured round is one step. What is there already is not written again, so that an export that was stopped goes
on where it ended.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Literal, get_args

from ferret_sdk.exporters._base import Destination, reported
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
    """Writes every round that is not there yet, follows the experiment to its end, and says how many were written.

    ``folder`` is where the tool keeps its files, if not in its usual place; ``project`` is what the tool groups runs
    by. Parameters are the specification with dotted names. Raises ``setup.missing`` where the tool is not installed,
    and ``export.failed`` where it refuses something; what was written stays.
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
            destination.close(run.refresh().state)
    return count
