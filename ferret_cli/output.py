"""Output of commands: results on stdout, messages on stderr.

Names, reasons and errors may come from a participant or a server: terminal control characters in them are removed, or
escaped in JSON.
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
    """Prints a message on stderr."""
    safe = (shown_lines(part) if isinstance(part, str) else part for part in parts)
    stderr().print(*safe, soft_wrap=True, highlight=False, markup=False)


def stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def emit(value: Any) -> None:
    """Prints one JSON document on one line of stdout."""
    document = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    print(shown_json(json.dumps(document, ensure_ascii=False, default=str)), flush=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints a table on stdout; None is shown as a dash. Cells are not cut if stdout is not a terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(Text(shown(column)))
    for row in rows:
        grid.add_row(*(Text("–" if cell is None else shown(str(cell))) for cell in row))
    Console(width=None if sys.stdout.isatty() else 10_000).print(grid)
