"""Cosine against the number T of gradient steps on Σ sin² xᵢ: one reconstruction of their sum, and T estimates.

The paper does not define the points of the zeroth-order method's T gradients. Both ways are here: *following*, at the
points of the exact descent and along the same K directions, where errors ε/2·vᵀ∇²F·v add up in K scalars; and
*walking*, on a separate descent with a new unbiased estimate at each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from matplotlib.figure import Figure
from torch import Tensor

from ferret_bench.reproduce import look, theory
from ferret_bench.reproduce.estimates import SINES, cosine, directions, point, reconstruct, scalars, zeroth_order
from ferret_bench.reproduce.look import FAMILY, NAMES, OTHERS, only, spread, values
from ferret_cli.files import Row
from ferret_core.projection.bases import basis

FAMILIES = "TG"
FOLLOWING, WALKING = "zeroth order, following", "zeroth order, walking"
LABELS = {
    FOLLOWING: "zeroth order, gradients along the exact descent",
    WALKING: "zeroth order, a descent of its own",
}


@final
@dataclass(frozen=True)
class Plot:
    d: int = 50_000
    K: int = 500
    T: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    learning_rate: float = 0.1
    epsilon: float = 0.1
    seeds: int = 3

    def measure(self) -> list[Row]:
        runs = [dict(self._run(seed)) for seed in range(self.seeds)]
        return [
            {
                "method": method,
                "d_elements": self.d,
                "K_coordinates": self.K,
                "T_steps": T,
                **spread("cosine", [run[method, T] for run in runs]),
                "cosine_theory": theory.cosine(method, self.d, self.K) if method in NAMES else None,
                "seeds": self.seeds,
            }
            for method in (*FAMILIES, *LABELS)
            for T in self.T
        ]

    def _run(self, seed: int) -> Iterator[tuple[tuple[str, int], float]]:
        """Cosine with the exact update of each method's after each number of steps."""
        start = x = own = point(self.d, seed)
        V = list(directions(self.d, range(self.K), seed))
        total = torch.zeros(self.K)
        for t in range(1, self.T[-1] + 1):
            total += torch.cat([scalars(SINES, x, rows, self.epsilon) for rows in V])
            x = x - self.learning_rate * SINES.gradient(x)
            own = own - self.learning_rate * self._unbiased(own, seed + 1000 * t)
            if t in self.T:
                delta = start - x
                for letter in FAMILIES:
                    yield (letter, t), cosine(reconstruct(delta, letter, self.K, seed), delta)
                yield (FOLLOWING, t), cosine(total @ torch.cat(V), delta)
                yield (WALKING, t), cosine(start - own, delta)

    def _unbiased(self, x: Tensor, seed: int) -> Tensor:
        """The zeroth-order estimate of the gradient at x, over ρ."""
        return zeroth_order(SINES, x, self.K, self.epsilon, seed) / basis("T").moments(self.d).rho

    def numbers(self, rows: Sequence[Row]) -> dict[str, float]:
        return {
            f"cosine_{method}_after_{T}_steps".replace(", ", "_").replace(" ", "_"): mean
            for method in ("T", *LABELS)
            for T in (self.T[0], self.T[-1])
            for mean in values(only(rows, method=method, T_steps=T), "cosine_mean")
        }

    def draw(self, rows: Sequence[Row]) -> Figure:
        title = f"Cosine between T gradient steps on F = {SINES.formula} and their estimate"
        figure, (axes,) = look.panels(f"{title}, d = {self.d:,}, K = {self.K}")
        for letter in FAMILIES:
            look.points(axes, only(rows, method=letter), "T_steps", "cosine", FAMILY[letter], NAMES[letter])
        for (method, label), style in zip(LABELS.items(), OTHERS, strict=False):
            look.points(axes, only(rows, method=method), "T_steps", "cosine", style, f"{label}, ε = {self.epsilon:g}")
        look.line(axes, only(rows, method="T"), "T_steps", "cosine_theory", "theory, √(K/(K + d)) for any T")
        axes.set(xlabel=f"T (steps at a rate of {self.learning_rate:g})", ylabel="cosine", xscale="log", ylim=(0, None))
        look.ticks(axes.xaxis, self.T)
        axes.legend()
        return figure


QUICK = Plot(d=1000, K=50, T=(1, 4), seeds=2)
