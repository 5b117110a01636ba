"""Numbers as people read them, each in its metric's unit."""

from __future__ import annotations

from collections.abc import Callable

from ferret_core.protocol.metrics import Unit, metric


def size(count: float) -> str:
    """Formats a number of bytes for people, in powers of 1,000: ``1.2 kB``."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


_FORMATS: dict[Unit, Callable[[float], str]] = {
    "nats per token": lambda value: f"{value:.4f}",
    "percent": lambda value: f"{value:.1f} %",
    "count": lambda value: f"{value:,.0f}",
    "ratio": lambda value: f"{value:.2g}",
    "s": lambda value: f"{value:.3g} s",
    "1/s": lambda value: f"{value:.3g}",
    "B": size,
}


def quantity(name: str, value: float | None) -> str | None:
    """Formats a value of the metric ``name`` in its unit; four digits if the catalog does not list the metric."""
    if value is None:
        return None
    entry = metric(name)
    return _FORMATS[entry.unit](value) if entry else f"{value:.4g}"
