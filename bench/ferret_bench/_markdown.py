"""Text and tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def plain(text: str) -> str:
    """``text`` on one line, nothing in it taken for HTML or for the end of a table's cell."""
    return escape(" ".join(text.split()), quote=False).replace("|", "\\|")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> str:
    """The first ``left`` columns hold words, the others numbers, set to the right. Cells are taken as Markdown."""
    rules = ["---" if place < left else "---:" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rules, *rows))
