"""Conversion of records to instruction examples, with configurable field names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ferret_core.datasets._base import Example
from ferret_core.datasets._record import Record, invalid


class Names(NamedTuple):
    """Names of a record's fields; ``label`` is None if no partition uses it."""

    instruction: str = "instruction"
    input: str = "input"
    output: str = "output"
    label: str | None = "label"


def examples_of(records: Iterable[Record], names: Names) -> list[Example]:
    """Converts records to examples; single ones may lack an input and a label.

    Training uses the first of a list of outputs. Raises ``dataset.invalid`` with place and field, also if no record has
    a renamed input or label.
    """
    unseen = {names.input, names.label} - {"input", "label", None}
    examples: list[Example] = []
    last: Record | None = None
    for last in records:
        unseen -= last.fields.keys()
        examples.append(_example(last, names))
    if unseen and last is not None:
        missing = min(name for name in unseen if name is not None)
        raise invalid(last.option, last.path, f"no example has the field {missing!r} ({last.others}): correct its name")
    return examples


def _example(record: Record, names: Names) -> Example:
    instruction = record.text(names.instruction)
    output, *accepted = record.texts(names.output)
    label = "" if names.label is None else record.text_or_empty(names.label)
    return Example(instruction, record.text_or_empty(names.input), output, label, tuple(accepted))
