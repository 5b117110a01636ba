"""1/ρ against d: the series that the format uses, and the formula as the paper prints it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from matplotlib.figure import Figure

from ferret_bench.reproduce import look
from ferret_bench.reproduce.look import Style, only, values
from ferret_cli import plot_style
from ferret_cli.files import Row
from ferret_core.projection.bases import basis

PRINTED = {"float64": Style(plot_style.RED, "s"), "float32": Style(plot_style.ORANGE, "v")}


@final
@dataclass(frozen=True)
class Plot:
    per_decade: int = 4
    decades: int = 9

    def measure(self) -> list[Row]:
        exponents = [step / self.per_decade for step in range(self.per_decade * self.decades + 1)]
        return [_row(round(10**exponent)) for exponent in exponents]

    def numbers(self, rows: Sequence[Row]) -> dict[str, float]:
        (last,) = only(rows, d_elements=10**self.decades)
        return {
            "inverse_rho_over_3d_at_largest_d": values([last], "inverse_rho_series")[0] / 3 / 10**self.decades,
            "printed_float64_deviation_at_largest_d": values([last], "deviation_float64")[0],
            "printed_float64_smallest_deviation": min(values(rows, "deviation_float64")),
        }

    def draw(self, rows: Sequence[Row]) -> Figure:
        figure, (rate, digits) = look.panels("1/ρ grows as 3d; the printed formula runs out of digits", columns=2)
        d = values(rows, "d_elements")
        rate.loglog(
            d, values(rows, "inverse_rho_series"), color=plot_style.SKY, linewidth=5, label="series (the format)"
        )
        rate.loglog(d, [3 * size for size in d], "--", color=plot_style.BLACK, label="3d")
        for precision, style in PRINTED.items():
            drawn = [row for row in rows if values([row], f"deviation_{precision}")[0] < 0.01]
            printed = values(drawn, f"inverse_rho_printed_{precision}")
            x = values(drawn, "d_elements")
            rate.loglog(
                x,
                printed,
                style.mark,
                color=style.colour,
                markerfacecolor="none",
                label=f"printed, {precision}, while within 1 %",
            )
            off = values(rows, f"deviation_{precision}")
            digits.loglog(d, off, style.mark, linestyle="-", color=style.colour, label=f"printed in {precision}")
        rate.set(title="Rate", xlabel="d (elements)", ylabel="1/ρ")
        digits.set(title="Printed formula against series", xlabel="d (elements)", ylabel="relative difference of ρ")
        for axes in (rate, digits):
            axes.legend()
        return figure


QUICK = Plot(per_decade=1)


def _row(d: int) -> Row:
    rho = basis("T").moments(d).rho
    row: Row = {"d_elements": d, "inverse_rho_series": 1 / rho}
    for precision in PRINTED:
        printed = _printed(d, precision)
        row[f"inverse_rho_printed_{precision}"] = 1 / printed if printed else None
        row[f"deviation_{precision}"] = abs(printed / rho - 1)
    return row


def _printed(d: int, precision: str) -> float:
    """1 − 2ψ(ε)ε / (2Φ(ε) − 1), ε = 1/√d, with ψ, Φ and every operation rounded to the precision named."""
    real = np.dtype(precision).type
    epsilon = real(1 / math.sqrt(d))
    density = real(math.exp(-(epsilon**2) / 2) / math.sqrt(2 * math.pi))
    cumulative = real((1 + math.erf(epsilon / math.sqrt(2))) / 2)
    return float(1 - 2 * density * epsilon / (2 * cumulative - 1))
