"""What a figure is: one file, one final class ``Plot`` whose fields are the set-up, and ``QUICK``, a small one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from matplotlib.figure import Figure

from ferret_cli.files import Row


class Plot(Protocol):
    """The defaults of the fields are the paper's set-up; seeds are fixed, so that only times differ between runs."""

    def measure(self) -> list[Row]:
        """One row per point."""
        ...

    def numbers(self, rows: Sequence[Row]) -> dict[str, float]:
        """What the figure says, in a few numbers."""
        ...

    def draw(self, rows: Sequence[Row]) -> Figure: ...
