"""Cosine and time against the number L of equal blocks, for a gradient of Σ sin² xᵢ and K coordinates in all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from matplotlib.figure import Figure

from ferret_bench.reproduce import look, theory
from ferret_bench.reproduce.estimates import SINES, cosine, equal_blocks, point, receive, send
from ferret_bench.reproduce.look import FAMILY, NAMES, only, spread, values
from ferret_cli.files import Row

FAMILIES = "TG"


@final
@dataclass(frozen=True)
class Plot:
    """L divides d and K."""

    d: int = 512_000
    K: int = 512
    L: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    seeds: int = 5

    def measure(self) -> list[Row]:
        return [self._row(letter, L) for letter in FAMILIES for L in self.L]

    def _row(self, letter: str, L: int) -> Row:
        self._timed(letter, L, 0)  # the first call of its kind may compile
        cosines, seconds = zip(*(self._timed(letter, L, seed) for seed in range(self.seeds)), strict=True)
        return {
            "method": letter,
            "d_elements": self.d,
            "K_coordinates": self.K,
            "L_blocks": L,
            **spread("cosine", cosines),
            "cosine_theory": theory.cosine(letter, self.d // L, self.K // L),
            "reconstruction_seconds_median": statistics.median(seconds),
            "seeds": self.seeds,
        }

    def _timed(self, letter: str, L: int, seed: int) -> tuple[float, float]:
        """Cosine, and seconds of the reconstruction alone."""
        blocks, delta = equal_blocks(self.d, L), SINES.gradient(point(self.d, seed))
        sent = send(delta, blocks, letter, [self.K // L] * L, seed)
        started = time.perf_counter()
        estimate = receive(self.d, blocks, letter, [sent])
        seconds = time.perf_counter() - started
        return cosine(estimate, delta), seconds

    def numbers(self, rows: Sequence[Row]) -> dict[str, float]:
        ours = only(rows, method="T")
        cosines, seconds = values(ours, "cosine_mean"), values(ours, "reconstruction_seconds_median")
        return {
            "cosine_T_smallest": min(cosines),
            "cosine_T_largest": max(cosines),
            "cosine_T_theory": values(ours, "cosine_theory")[0],
            "speedup_T_from_1_to_most_blocks": seconds[0] / seconds[-1],
        }

    def draw(self, rows: Sequence[Row]) -> Figure:
        title = f"L equal blocks: F = {SINES.formula}, d = {self.d:,}, K = {self.K}"
        figure, (axes,) = look.panels(title)
        clock = axes.twinx()
        clock.spines.right.set_visible(True)
        for letter in FAMILIES:
            found, style = only(rows, method=letter), FAMILY[letter]
            look.points(axes, found, "L_blocks", "cosine", style, f"{NAMES[letter]}: cosine")
            look.line(
                clock,
                found,
                "L_blocks",
                "reconstruction_seconds_median",
                f"{NAMES[letter]}: time",
                color=style.colour,
                marker=style.mark,
                markerfacecolor="white",
                linestyle=":",
            )
        look.line(axes, only(rows, method="T"), "L_blocks", "cosine_theory", "theory, √(K/(K + d)) for any L")
        axes.set(xlabel="L (blocks)", ylabel="cosine (filled marks)", ylim=(0, 1.4 * max(values(rows, "cosine_mean"))))
        axes.set_xscale("log", base=2)
        look.ticks(axes.xaxis, self.L)
        slowest = max(values(rows, "reconstruction_seconds_median"))
        clock.set(ylabel="time of one reconstruction, one thread (s, hollow marks)", yscale="log")
        clock.set_ylim(top=50 * slowest)
        clock.grid(visible=False)
        look.legend(axes, clock)
        return figure


QUICK = Plot(d=4096, K=64, L=(1, 8, 64), seeds=2)
