"""Draws the figures on reconstruction into a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from matplotlib.figure import Figure

from ferret_bench.reproduce.figures import cosine_d, cosine_k, cosine_l, cosine_t, error_per_byte, rho, seeds
from ferret_cli import plot_style
from ferret_cli.files import Row, to_csv, write


class Plot(Protocol):
    """The defaults of the fields are the paper's set-up; seeds are fixed, so that only times differ between runs."""

    def measure(self) -> list[Row]:
        """Returns one row per point."""
        ...

    def numbers(self, rows: Sequence[Row]) -> dict[str, float]:
        """Returns the figure's summary in a few numbers."""
        ...

    def draw(self, rows: Sequence[Row]) -> Figure: ...


FIGURES = (rho, cosine_k, cosine_t, cosine_d, cosine_l, error_per_byte, seeds)


class Drawn(NamedTuple):
    """One figure's two files, and its summary in numbers."""

    name: str
    png: Path
    csv: Path
    numbers: dict[str, float]


def plots(*, quick: bool) -> dict[str, Plot]:
    """The figures by name, in the paper's order and then ours."""
    return {module.__name__.rpartition(".")[2]: module.QUICK if quick else module.Plot() for module in FIGURES}


def draw(folder: Path, plots: Mapping[str, Plot]) -> Iterator[Drawn]:
    """Measures, writes and yields one figure after the other; those written stay if a later one is interrupted."""
    for name, plot in plots.items():
        rows = plot.measure()
        csv = write(folder / f"{name}.csv", to_csv(rows).encode())
        with plot_style.applied():
            png = write(folder / f"{name}.png", plot_style.png(plot.draw(rows)))
        yield Drawn(name, png, csv, plot.numbers(rows))
