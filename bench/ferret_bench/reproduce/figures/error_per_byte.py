"""Cosine and captured energy against the bytes that travel: every family with every quantisation of its coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, final

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from ferret_bench.reproduce import look, theory
from ferret_bench.reproduce.estimates import cosine, equal_blocks, error, point, receive, send
from ferret_bench.reproduce.look import FAMILY, NAMES, Style, only, spread, values
from ferret_cli import plot_style
from ferret_cli.files import Row
from ferret_core.projection.allocation import coordinates_within, cost
from ferret_core.projection.coordinate_encoding import PRECISIONS, Precision
from ferret_core.projection.quantize import dequantize, quantize

if TYPE_CHECKING:
    from matplotlib.typing import LineStyleType

COLOURS: dict[Precision, str] = {
    "float32": plot_style.BLACK,
    "float16": plot_style.BLUE,
    "int8": plot_style.ORANGE,
    "sign": plot_style.RED,
}
DENSE = frozenset("TR")
DASHES: dict[str, LineStyleType] = {"G": "-", "T": "--"}
LINES = {"G": "orthogonal columns (G, H)", "T": "independent entries (T, R)"}
# Families with the same error at the same place: their marks are drawn side by side.
ASIDE = {"T": 0.86, "R": 0.95, "G": 1.05, "H": 1.16}


@final
@dataclass(frozen=True)
class Plot:
    """Δ is standard normal. Dense families, with cost d·K, stop at ``most_entries`` of it."""

    d: int = 65_536
    budgets: tuple[int, ...] = (128, 512, 2048, 8192)
    most_entries: int = 2**30
    seeds: int = 5

    def measure(self) -> list[Row]:
        return [
            self._row(letter, kind, K)
            for letter, kind, budget in product(ASIDE, PRECISIONS, self.budgets)
            for K in [coordinates_within(budget, kind, equal_blocks(self.d, 1))]
            if letter not in DENSE or K * self.d <= self.most_entries
        ]

    def _row(self, letter: str, kind: Precision, K: int) -> Row:
        updates = [point(self.d, seed) for seed in range(self.seeds)]
        pairs = [(self._sent(delta, letter, kind, K, seed), delta) for seed, delta in enumerate(updates)]
        size = cost(K, kind, equal_blocks(self.d, 1))
        cosines = [cosine(*pair) for pair in pairs]
        expected = theory.cosine(letter, self.d, K, theory.NOISE[kind])
        captured = [found**2 for found in cosines]
        per_bit = self.d / (8 * size)
        return {
            "family": letter,
            "quantisation": kind,
            "d_elements": self.d,
            "K_coordinates": K,
            "size_bytes": size,
            **spread("cosine", cosines),
            "cosine_theory": expected,
            **spread("captured_energy", captured),
            "captured_energy_theory": expected**2,
            **spread("captured_energy_times_d_per_bit", [per_bit * energy for energy in captured]),
            "captured_energy_times_d_per_bit_theory": per_bit * expected**2,
            **spread("relative_error", [error(*pair) for pair in pairs]),
            "relative_error_theory": theory.error(letter, self.d, K, theory.NOISE[kind]),
            "seeds": self.seeds,
        }

    def _sent(self, delta: Tensor, letter: str, kind: Precision, K: int, seed: int) -> Tensor:
        """Δ~ of the coordinates as they arrive."""
        blocks = equal_blocks(self.d, 1)
        sent = send(delta, blocks, letter, [K], seed)
        arrived = dequantize(quantize(sent.coordinates, kind, seed), kind, [K])
        return receive(self.d, blocks, letter, [sent._replace(coordinates=arrived)])

    def numbers(self, rows: Sequence[Row]) -> dict[str, float]:
        return {
            f"captured_energy_times_d_per_bit_{row['family']}_{row['quantisation']}": mean
            for letter, kind in product(ASIDE, PRECISIONS)
            for row in only(rows, family=letter, quantisation=kind)[-1:]
            for mean in values([row], "captured_energy_times_d_per_bit_mean")
        }

    def draw(self, rows: Sequence[Row]) -> Figure:
        title = f"What a byte buys: one update of d = {self.d:,}, every family and quantisation"
        figure, (direction, energy) = look.panels(title, columns=2)
        columns = {direction: "cosine", energy: "captured_energy_times_d_per_bit"}
        for (axes, column), kind in product(columns.items(), PRECISIONS):
            for letter, shift in ASIDE.items():
                found = only(rows, family=letter, quantisation=kind)
                style = Style(COLOURS[kind], FAMILY[letter].mark, "")
                look.points(axes, found, "size_bytes", column, style, letter, shift=shift)
            for letter, dash in DASHES.items():
                found = only(rows, family=letter, quantisation=kind)
                look.line(axes, found, "size_bytes", f"{column}_theory", color=COLOURS[kind], linestyle=dash)
        direction.set(title="Direction", ylabel="cosine")
        energy.set(title="Captured energy per bit sent, in units of 1/d", ylabel="cosine² · d / bits sent")
        for axes in (direction, energy):
            axes.set(xlabel="size of a contribution without its names (bytes)", xscale="log", yscale="log")
            look.ticks(axes.xaxis, self.budgets)
            look.plain(axes.yaxis)
        energy.set_ylim(top=5 * max(values(rows, "captured_energy_times_d_per_bit_theory")))
        kinds = [_key(COLOURS[kind], "", "-", kind) for kind in reversed(PRECISIONS)]
        direction.legend(handles=kinds, title="from top to bottom", alignment="left")
        marks = [_key(plot_style.GREY, FAMILY[letter].mark, "", NAMES[letter]) for letter in ASIDE]
        lines = [_key(plot_style.GREY, "", dash, f"theory, {LINES[letter]}") for letter, dash in DASHES.items()]
        energy.legend(handles=[*marks, *lines], loc="upper center")
        return figure


QUICK = Plot(d=4096, budgets=(64, 256), seeds=2)


def _key(colour: str, mark: str, dash: LineStyleType, label: str) -> Line2D:
    return Line2D([], [], color=colour, marker=mark, linestyle=dash, label=label)
