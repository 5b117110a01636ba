"""What commands write for people: a folder checked before the work, whole files, and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from ferret_core.protocol.errors import FerretError

Row = dict[str, str | float | None]
"""A line of a CSV file by column; None where a column does not apply. All rows of a file have the same columns."""


def writable(folder: Path, field: str) -> Path:
    """Makes the folder if it is missing and returns it; ``request.invalid`` about ``field`` if that is impossible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot be used as a folder ({error.strerror}); choose another"
        raise FerretError.of_field("request.invalid", field, str(folder), reason) from error
    return folder


def write(path: Path, content: bytes) -> Path:
    """Writes a draft beside ``path`` and renames it: an interrupted write leaves the old file, or none."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_bytes(content)
        return draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def to_csv(rows: Sequence[Row]) -> str:
    """A header and one line per row; numbers with all their digits, empty for None. Nothing if there are no rows."""
    if not rows:
        return ""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
