"""A participant's local examples: read here, never sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from ferret_core.datasets._record import Record
    from ferret_core.datasets.base import Example

Examples = Path | str | Iterable[Mapping[str, Any]]
"""The path of a JSON Lines file, plain or ``.gz``, or rows: a list of dicts, a generator, a Hugging Face dataset."""
FIELDS = ("instruction", "input", "output", "messages", "unit")
OPTION = "data"
MOST_ROWS = 20_000_000
"""Maximum rows, as for lines of a file: an endless generator does not fill the memory unnoticed."""


def read_examples(examples: Examples, fields: Mapping[str, str] | None = None) -> list[Example]:
    """Returns the participant's examples. ``fields`` maps field names, such as ``{"instruction": "question"}``.

    Raises ``dataset.invalid`` with the file, the line and the field, and the existing fields, and ``request.invalid``
    for a key of ``fields`` that is not in :data:`FIELDS`.
    """
    from ferret_core.datasets._record import Names, examples_of

    for name, called in (fields or {}).items():
        if name not in FIELDS or not called:
            message = f"give one of {', '.join(FIELDS)}, and what your data call it"
            raise FerretError.of_field("request.invalid", "fields", f"{name}={called}", message)
    own = (replace(record, own=True) for record in _records(examples))
    return examples_of(own, Names(label=None)._replace(**(fields or {})))


def _records(examples: Examples) -> Iterator[Record]:
    from ferret_core.datasets._json import read_lines

    if isinstance(examples, str | Path):
        return read_lines(str(examples), OPTION)
    return _rows(examples)


def _rows(rows: object) -> Iterator[Record]:
    """Yields each row as a record. Raises ``dataset.invalid`` for a row that is not a mapping, and without rows."""
    from ferret_core.datasets._record import Record, invalid, kind_of

    what = type(rows).__name__
    if isinstance(rows, Mapping):
        parts = ", ".join(str(name) for name in islice(cast(Mapping[object, object], rows), 5))
        raise invalid(OPTION, what, f"is a mapping of {parts or 'nothing'}: give a list of rows, or one of its parts")
    if not isinstance(rows, Iterable):
        raise invalid(OPTION, what, "is neither a path nor iterable: give a file, or rows of texts")
    count = 0
    for count, row in enumerate(cast(Iterable[object], rows), start=1):
        if not isinstance(row, Mapping):
            message = f"row {count} is {kind_of(row)}, not a mapping of fields to texts (pandas: .to_dict('records'))"
            raise invalid(OPTION, what, message)
        if count > MOST_ROWS:
            raise invalid(OPTION, what, f"has more than {MOST_ROWS:,} rows: give fewer")
        yield Record(OPTION, what, f"row {count}", dict(cast(Mapping[str, Any], row)))
    if not count:
        raise invalid(OPTION, what, "holds no examples: it has no rows")
