"""What goes where: results on stdout, everything said along the way on stderr.

Names, reasons and errors may be a participant's or a server's words: what a terminal would obey in them is left out, or
in JSON written as an escape.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ferret_core.protocol.sanitize import shown, shown_json, shown_lines

if TYPE_CHECKING:
    from rich.console import Console


def say(*parts: Any) -> None:
    """A message for people, on stderr."""
    safe = (shown_lines(part) if isinstance(part, str) else part for part in parts)
    stderr().print(*safe, soft_wrap=True, highlight=False, markup=False)


def stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def emit(value: Any) -> None:
    """One JSON document on one line of stdout."""
    document = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    print(shown_json(json.dumps(document, ensure_ascii=False, default=str)), flush=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on stdout; None is shown as a dash. Cells are kept whole where stdout is no terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(Text(shown(column)))
    for row in rows:
        grid.add_row(*(Text("–" if cell is None else shown(str(cell))) for cell in row))
    Console(width=None if sys.stdout.isatty() else 10_000).print(grid)
