"""Cosine against d at fixed K, for a gradient of Σ sin² xᵢ; and the error with the bound of the paper's theorem 2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from matplotlib.figure import Figure
from torch import Tensor

from ferret_bench.reproduce import look, theory
from ferret_bench.reproduce.estimates import SINES, cosine, error, point, reconstruct, zeroth_order
from ferret_bench.reproduce.look import FAMILY, NAMES, OTHERS, only, slope, spread, values
from ferret_cli import plot_style
from ferret_cli.files import Row

FAMILIES = "TG"
ZEROTH = "zeroth order"


@final
@dataclass(frozen=True)
class Plot:
    d: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
    K: int = 500
    epsilon: float = 0.1
    seeds: int = 4

    def measure(self) -> list[Row]:
        return [self._row(method, d) for method in (*FAMILIES, ZEROTH) for d in self.d]

    def _row(self, method: str, d: int) -> Row:
        """A zeroth-order estimate has another scale than the gradient, so that only its direction compares."""
        updates = [SINES.gradient(point(d, seed)) for seed in range(self.seeds)]
        estimates = [self._estimate(method, d, seed) for seed in range(self.seeds)]
        pairs = list(zip(estimates, updates, strict=True))
        comparable = method != ZEROTH
        return {
            "method": method,
            "epsilon": None if comparable else self.epsilon,
            "d_elements": d,
            "K_coordinates": self.K,
            **spread("cosine", [cosine(*pair) for pair in pairs]),
            "cosine_theory": theory.cosine(method, d, self.K) if comparable else None,
            **spread("error_norm", [math.sqrt(error(*pair)) for pair in pairs] if comparable else []),
            "error_norm_theory": math.sqrt(theory.error(method, d, self.K)) if comparable else None,
            "error_norm_bound": theory.bound(d, self.K) if method == "T" else None,
            "seeds": self.seeds,
        }

    def _estimate(self, method: str, d: int, seed: int) -> Tensor:
        x = point(d, seed)
        if method == ZEROTH:
            return zeroth_order(SINES, x, self.K, self.epsilon, seed)
        return reconstruct(SINES.gradient(x), method, self.K, seed)

    def numbers(self, rows: Sequence[Row]) -> dict[str, float]:
        large = {method: only(rows, method=method)[len(self.d) // 2 :] for method in ("T", ZEROTH)}
        (last,) = only(rows, method="T", d_elements=self.d[-1])
        return {
            "exponent_of_d_T": slope(large["T"], "d_elements", "cosine_mean"),
            "exponent_of_d_zeroth_order": slope(large[ZEROTH], "d_elements", "cosine_mean"),
            "error_norm_at_largest_d": values([last], "error_norm_mean")[0],
            "error_norm_theory_at_largest_d": values([last], "error_norm_theory")[0],
            "error_norm_bound_at_largest_d": values([last], "error_norm_bound")[0],
        }

    def draw(self, rows: Sequence[Row]) -> Figure:
        title = f"Reconstructing a gradient of F = {SINES.formula} from K = {self.K} coordinates"
        figure, (direction, distance) = look.panels(title, columns=2)
        for letter in FAMILIES:
            found = only(rows, method=letter)
            look.points(direction, found, "d_elements", "cosine", FAMILY[letter], NAMES[letter])
            look.points(distance, found, "d_elements", "error_norm", FAMILY[letter], NAMES[letter])
        zeroth = only(rows, method=ZEROTH)
        look.points(direction, zeroth, "d_elements", "cosine", OTHERS[0], f"zeroth order, ε = {self.epsilon:g}")
        ours = only(rows, method="T")
        look.line(direction, ours, "d_elements", "cosine_theory", "theory, √(K/(K + d))")
        look.line(distance, ours, "d_elements", "error_norm_theory", "theory, √(d/K)")
        bound = {"color": plot_style.GREY, "linestyle": ":", "linewidth": 2.5}
        look.line(distance, ours, "d_elements", "error_norm_bound", "the paper's bound (theorem 2)", **bound)
        direction.set(title="Direction", ylabel="cosine")
        distance.set(title="Distance", ylabel="‖Δ~ − Δ‖ / ‖Δ‖")
        for axes in (direction, distance):
            axes.set(xlabel="d (elements)", xscale="log", yscale="log")
            axes.legend()
        look.plain(direction.yaxis)
        return figure


QUICK = Plot(d=(250, 500, 1000, 2000), K=100, seeds=2)
