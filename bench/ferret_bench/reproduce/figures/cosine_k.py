"""Cosine against K, for a gradient of Σ xᵢ²: reconstruction and the zeroth-order method at several ε."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple, final

import torch
from matplotlib.figure import Figure

from ferret_bench.reproduce import look, theory
from ferret_bench.reproduce.estimates import SQUARES, cosine, directions, point, reconstruct, scalars
from ferret_bench.reproduce.look import FAMILY, NAMES, OTHERS, only, slope, spread, values
from ferret_cli import plot_style
from ferret_cli.files import Row

FAMILIES = "TG"
PRECISIONS = {"float32": torch.float32, "float64": torch.float64}
ZEROTH = "zeroth order"


class Method(NamedTuple):
    """A zeroth-order method: its ε, and the type in which it evaluates F."""

    epsilon: float
    precision: str


@final
@dataclass(frozen=True)
class Plot:
    d: int = 100_000
    K: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512, 1024)
    epsilons: tuple[float, ...] = (10.0, 1.0, 0.1, 0.01, 0.001)
    seeds: int = 5

    def measure(self) -> list[Row]:
        return [*self._reconstructed(), *self._zeroth_order()]

    def _reconstructed(self) -> Iterator[Row]:
        updates = [SQUARES.gradient(point(self.d, seed)) for seed in range(self.seeds)]
        for letter, K in product(FAMILIES, self.K):
            cosines = [cosine(reconstruct(delta, letter, K, seed), delta) for seed, delta in enumerate(updates)]
            yield self._row(letter, None, K, cosines, theory.cosine(letter, self.d, K))

    def _zeroth_order(self) -> Iterator[Row]:
        runs = [dict(self._walk(seed)) for seed in range(self.seeds)]
        for method, K in product(self._methods(), self.K):
            cosines, biases = zip(*(run[method, K] for run in runs), strict=True)
            expected = theory.cosine("T", self.d, K, noise=_truncation(method.epsilon))
            yield self._row(ZEROTH, method, K, cosines, expected, biases)

    def _methods(self) -> list[Method]:
        return [Method(*pair) for pair in product(self.epsilons, PRECISIONS)]

    def _walk(self, seed: int) -> Iterator[tuple[tuple[Method, int], tuple[float, float]]]:
        """Cosine and ‖V·(g − Vᵀ∇F)/K‖ of every method at every K, all along the same directions."""
        points = {precision: point(self.d, seed).to(dtype) for precision, dtype in PRECISIONS.items()}
        gradients = {precision: SQUARES.gradient(x) for precision, x in points.items()}
        exact = {precision: torch.zeros_like(x) for precision, x in points.items()}
        totals = {method: torch.zeros_like(points[method.precision]) for method in self._methods()}
        for done, K in pairwise((0, *self.K)):
            for drawn in directions(self.d, range(done, K), seed):
                V = {precision: drawn.to(dtype) for precision, dtype in PRECISIONS.items()}
                for precision, rows in V.items():
                    exact[precision] += rows @ gradients[precision] @ rows
                for (epsilon, precision), total in totals.items():
                    total += scalars(SQUARES, points[precision], V[precision], epsilon) @ V[precision]
            for method, total in totals.items():
                bias = float((total - exact[method.precision]).norm()) / K
                yield (method, K), (cosine(total, gradients["float64"]), bias)

    def _row(
        self,
        name: str,
        method: Method | None,
        K: int,
        cosines: Sequence[float],
        expected: float,
        biases: Sequence[float] = (),
    ) -> Row:
        return {
            "method": name,
            "epsilon": method.epsilon if method else None,
            "precision": method.precision if method else None,
            "d_elements": self.d,
            "K_coordinates": K,
            **spread("cosine", cosines),
            "cosine_theory": expected,
            **spread("bias", biases),
            "bias_bound": SQUARES.smoothness * method.epsilon / 2 if method else None,
            "seeds": self.seeds,
        }

    def numbers(self, rows: Sequence[Row]) -> dict[str, float]:
        ours, zeroth = only(rows, method="T"), only(rows, method=ZEROTH, precision="float32")
        found = {
            "exponent_of_K": slope(ours, "K_coordinates", "cosine_mean"),
            "exponent_of_K_theory": slope(ours, "K_coordinates", "cosine_theory"),
            "cosine_T": values(ours, "cosine_mean")[-1],
        }
        for row in only(zeroth, K_coordinates=self.K[-1]):
            found[f"cosine_zeroth_order_{row['epsilon']}"] = values([row], "cosine_mean")[0]
        return found

    def draw(self, rows: Sequence[Row]) -> Figure:
        title = f"Cosine between the gradient of F = {SQUARES.formula} and its estimate, d = {self.d:,}"
        figure, (rate, choice) = look.panels(title, columns=2)
        for letter in FAMILIES:
            look.points(rate, only(rows, method=letter), "K_coordinates", "cosine", FAMILY[letter], NAMES[letter])
        single = only(rows, method=ZEROTH, precision="float32")
        for epsilon, style in zip(self.epsilons[::2], OTHERS, strict=False):
            label = f"zeroth order, ε = {epsilon:g}"
            look.points(rate, only(single, epsilon=epsilon), "K_coordinates", "cosine", style, label)
        look.line(rate, only(rows, method="T"), "K_coordinates", "cosine_theory", "theory, √(K/(K + d))")
        rate.set(title="Against K; F in fp32", xlabel="K (coordinates)", ylabel="cosine", xscale="log", yscale="log")

        last = only(rows, K_coordinates=self.K[-1])
        for precision, style in zip(PRECISIONS, OTHERS, strict=False):
            found = only(last, precision=precision)
            look.points(choice, found, "epsilon", "cosine", style, f"zeroth order, F in {precision}", hollow=True)
        exact = only(last, precision="float64")
        look.line(choice, exact, "epsilon", "cosine_theory", "theory, zeroth order, exact F")
        (ours,) = values(only(last, method="T"), "cosine_mean")
        choice.axhline(ours, color=plot_style.BLUE, label=NAMES["T"])
        choice.set(title=f"Against ε, at K = {self.K[-1]:,}", xlabel="ε", ylabel="cosine", xscale="log")
        rate.set_ylim(0.8 * min(values(single, "cosine_mean")), 4 * max(values(single, "cosine_mean")))
        look.ticks(rate.xaxis, self.K)
        look.plain(rate.yaxis)
        for axes in (rate, choice):
            axes.legend()
        return figure


QUICK = Plot(d=2048, K=(16, 64, 256), epsilons=(10.0, 0.1, 0.001), seeds=3)


def _truncation(epsilon: float) -> float:
    """Returns the energy of ε/2·vᵀ∇²F·v = ε‖v‖² = ε/3 relative to vᵀ∇F, of variance 4d·ρ = 4/3 for a standard normal
    x.
    """
    return (epsilon / 3) ** 2 / (4 / 3)
