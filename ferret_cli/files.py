"""Output files of commands: folders checked before the work, atomic writes, and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from ferret_core.protocol.errors import FerretError

Row = dict[str, str | float | None]
"""A line of a CSV file by column; None where a column does not apply. All rows of a file have the same columns."""


def writable(folder: Path, field: str) -> Path:
    """Returns the folder, created if missing; raises ``request.invalid`` about ``field`` if that is impossible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot be used as a folder ({error.strerror}); choose another"
        raise FerretError.of_field("request.invalid", field, str(folder), reason) from error
    return folder


def write(path: Path, content: bytes) -> Path:
    """Writes a draft next to ``path`` and renames it: an interrupted write leaves the old file, or no file."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_bytes(content)
        return draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def to_csv(rows: Sequence[Row]) -> str:
    """Returns a header and one line per row, numbers with all their digits, None as empty; empty without rows."""
    if not rows:
        return ""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
