"""``ferret worker train|aggregate|playground``"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ferret_core.protocol.task_names import Queue


def worker(queue: Annotated[Queue, typer.Argument(help="Which kind of work this process does.")]) -> None:
    """Run one worker alone, as one process of a larger installation."""
    from ferret_cli.requirements_check import require_server

    require_server()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "ferret_worker", queue.value])  # noqa: S606 - our own words, no shell
