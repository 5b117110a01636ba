"""The output of ``Run.wait``: a line per change on stderr, or one updated output in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ferret_core.protocol.formatting import quantity
from ferret_core.protocol.sanitize import shown

if TYPE_CHECKING:
    from ferret_sdk.service.run import Run

Show = Callable[["Run"], None]
"""Callback with the run after each poll."""


def silent(run: Run) -> None:
    """Shows nothing."""


def here() -> Show:
    """Returns the display for this process: a notebook's under IPython."""
    return Updated() if _in_notebook() else Lines()


class Lines:
    """A line on stderr whenever it differs from the previous one."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, run: Run) -> None:
        if (text := words(run)) != self._last:
            self._last = text
            print(text, file=sys.stderr, flush=True)  # noqa: T201 - what it is for


class Updated:
    """The run's table in the notebook's output, redrawn after changes."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._last = ""

    def __call__(self, run: Run) -> None:
        from IPython.display import display

        if (text := run._repr_html_()) == self._last:
            return
        self._last = text
        if self._handle is None:
            self._handle = display(run, display_id=True)
        else:
            self._handle.update(run)


def words(run: Run) -> str:
    """Formats the state: ``exp_…: running, round 3 of 12, evaluation loss 1.2345, Rouge-L 35.2 %``."""
    told = run.experiment
    scores = (
        f"{label} {quantity(name, told.metrics[name].last)}"
        for name, label in (("eval_loss", "evaluation loss"), ("rouge_l", "Rouge-L"))
        if name in told.metrics and told.metrics[name].last is not None
    )
    parts = [f"{told.id}: {told.shown_state}", f"round {told.round} of {told.rounds}", *scores]
    if told.stalled:
        parts.append(told.stalled.detail)
    return shown(", ".join(parts))


def _in_notebook() -> bool:
    """Returns True if a kernel shows outputs; IPython in a terminal does not."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config
