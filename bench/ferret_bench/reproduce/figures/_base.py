"""The interface of a figure: one file, one final class ``Plot`` with the set-up in its fields, and a small
``QUICK``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from matplotlib.figure import Figure

from ferret_cli.files import Row


class Plot(Protocol):
    """The defaults of the fields are the paper's set-up; seeds are fixed, so that only times differ between runs."""

    def measure(self) -> list[Row]:
        """Returns one row per point."""
        ...

    def numbers(self, rows: Sequence[Row]) -> dict[str, float]:
        """Returns the figure's summary in a few numbers."""
        ...

    def draw(self, rows: Sequence[Row]) -> Figure: ...
