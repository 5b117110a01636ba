"""Light and dark: the dashboard's colours for pictures, and Okabe and Ito's for series, told apart by everyone."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from ferret_cli.paper import look
from ferret_cli.paper.look import Style

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

MARKS = "osD^vPX*hp<>d"
"""As many as have no factor in common with the colours: no two of 91 series look the same."""


@dataclass(frozen=True)
class Theme:
    """``series`` are colours in the order they are given out; marks change with each, dashes with each turn."""

    background: str
    text: str
    muted: str
    line: str
    accent: str
    danger: str
    series: tuple[str, ...]

    def style(self, number: int) -> Style:
        """The look of the series with this number, the same in every panel."""
        turn, place = divmod(number, len(self.series))
        return Style(self.series[place], MARKS[number % len(MARKS)], ("-", "--", ":")[turn % 3])

    def applied(self) -> AbstractContextManager[None]:
        """Figures made and saved inside have this theme."""
        own: dict[RcKeyType, Any] = {
            "figure.facecolor": self.background,
            "savefig.facecolor": self.background,
            "axes.facecolor": self.background,
            "axes.edgecolor": self.muted,
            "axes.labelcolor": self.muted,
            "axes.titlecolor": self.text,
            "axes.titlelocation": "left",
            "axes.titleweight": "bold",
            "axes.titlepad": 10,
            "axes.axisbelow": True,
            "figure.constrained_layout.h_pad": 0.14,
            "figure.constrained_layout.w_pad": 0.14,
            "text.color": self.text,
            "xtick.color": self.muted,
            "ytick.color": self.muted,
            "grid.color": self.line,
            "legend.labelcolor": self.text,
            "legend.frameon": False,
        }
        return mpl.rc_context(look.RULES | own)


LIGHT = Theme(
    background="#ffffff",
    text="#1d1c1a",
    muted="#69655d",
    line="#e8e5e0",
    accent="#0f766e",
    danger="#b42318",
    series=("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4d4a45"),
)
DARK = Theme(
    background="#1b1b19",
    text="#eceae5",
    muted="#a39f95",
    line="#302f2b",
    accent="#45c1b1",
    danger="#f88379",
    series=("#4aa8e0", "#f08a4b", "#3fc79a", "#e39cc5", "#f0b840", "#8fd0f2", "#c9c4ba"),
)
