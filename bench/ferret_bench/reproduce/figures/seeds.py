"""Error of the mean of N updates against N: own seeds, and one shared seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import final

import torch
from matplotlib.figure import Figure
from torch import Tensor

from ferret_bench.reproduce import look, theory
from ferret_bench.reproduce.estimates import equal_blocks, receive, send
from ferret_bench.reproduce.look import FAMILY, Style, only, spread, values
from ferret_cli import plot_style
from ferret_cli.files import Row

BASIS = "G"
LABELS = {"own": "own seeds", "shared": "one shared seed"}
STYLES = {"own": FAMILY[BASIS], "shared": Style(plot_style.BLUE, "o", "--")}


@final
@dataclass(frozen=True)
class Plot:
    d: int = 16_384
    K: int = 256
    N: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    cosines: tuple[float, ...] = (0.0, 0.3, 1.0)
    seeds: int = 8

    def measure(self) -> list[Row]:
        return [self._row(way, c, N) for way, c, N in product(LABELS, self.cosines, self.N)]

    def _row(self, way: str, c: float, N: int) -> Row:
        return {
            "seeds_are": way,
            "family": BASIS,
            "pairwise_cosine": c,
            "d_elements": self.d,
            "K_coordinates": self.K,
            "N_updates": N,
            **spread("relative_error", [self._error(way, c, N, seed) for seed in range(self.seeds)]),
            "relative_error_theory": theory.mean_error(way, self.d, self.K, N, c),
            "seeds": self.seeds,
        }

    def _error(self, way: str, c: float, N: int, seed: int) -> float:
        """‖mean Δ~ − mean Δ‖² for N updates of norm 1."""
        updates, blocks = _updates(self.d, N, c, seed), equal_blocks(self.d, 1)
        terms = [
            send(delta, blocks, BASIS, [self.K], seed + (1000 * i if way == "own" else 0))
            for i, delta in enumerate(updates)
        ]
        return float((receive(self.d, blocks, BASIS, terms) - updates.mean(0)).double().square().sum())

    def numbers(self, rows: Sequence[Row]) -> dict[str, float]:
        found: dict[str, float] = {}
        for row in only(rows, N_updates=self.N[-1]):
            name = f"relative_error_{row['seeds_are']}_cosine_{row['pairwise_cosine']}"
            found[name], found[f"{name}_theory"] = (
                values([row], f"relative_error_{kind}")[0] for kind in ("mean", "theory")
            )
        return found

    def draw(self, rows: Sequence[Row]) -> Figure:
        title = f"Error of the mean of N updates, d = {self.d:,}, K = {self.K}; lines are theory"
        figure, panels = look.panels(title, columns=len(self.cosines), sharey=True)
        for axes, c in zip(panels, self.cosines, strict=True):
            for way, label in LABELS.items():
                found = only(rows, seeds_are=way, pairwise_cosine=c)
                style = STYLES[way]
                look.points(axes, found, "N_updates", "relative_error", style._replace(dash=""), label)
                look.line(axes, found, "N_updates", "relative_error_theory", color=style.colour, linestyle=style.dash)
            axes.set(title=f"pairwise cosine c = {c:g}", xlabel="N (updates)", xscale="log", yscale="log")
            look.ticks(axes.xaxis, self.N)
            look.plain(axes.yaxis)
        panels[0].set_ylabel("‖mean Δ~ − mean Δ‖² / mean ‖Δ‖²")
        panels[0].legend()
        return figure


QUICK = Plot(d=2048, K=64, N=(1, 4, 8), cosines=(0.0, 1.0), seeds=3)


def _updates(d: int, N: int, c: float, seed: int) -> Tensor:
    """Returns N vectors of norm 1 with cosine c between any two, fp32 (N, d): a common direction plus own ones."""
    drawn = torch.randn(d, N + 1, generator=torch.Generator().manual_seed(seed))
    common, *own = torch.linalg.qr(drawn).Q.T
    return torch.stack([math.sqrt(c) * common + math.sqrt(1 - c) * direction for direction in own])
