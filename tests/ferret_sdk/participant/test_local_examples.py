"""A participant's examples come as a file or as rows, under its own names; errors say where and what there is."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferret_core.datasets.base import Example
from ferret_core.protocol.errors import FerretError
from ferret_sdk.participant import local_examples
from ferret_sdk.participant.local_examples import read_examples

ROWS = [{"instruction": "Add.", "input": "2 2", "output": "4"}, {"instruction": "Why?", "output": "So."}]
READ = [Example("Add.", "2 2", "4"), Example("Why?", "", "So.")]
OWN = {"instruction": "question", "output": "answer"}


class Dataset:
    """What a Hugging Face dataset is to its reader: rows as dicts, again and again, and columns with names."""

    column_names = ("instruction", "input", "output")

    def __len__(self) -> int:
        return len(ROWS)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input": None, **ROWS[index]}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(len(self)))


def refused(rows: Any, fields: dict[str, str] | None = None, code: str = "dataset.invalid") -> str:
    with pytest.raises(FerretError) as raised:
        read_examples(rows, fields)
    assert raised.value.code == code
    return raised.value.detail


def test_rows_are_a_list_a_generator_or_a_dataset(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    for rows in (ROWS, tuple(ROWS), (row for row in ROWS), Dataset(), path, str(path), tmp_path / "rows.jsonl.gz"):
        assert read_examples(rows) == READ


def test_fields_have_the_owners_names(tmp_path: Path) -> None:
    rows = [{"question": "Add.", "input": "2 2", "answer": ["4", "four"], "label": 7}]
    assert read_examples(rows, OWN) == [Example("Add.", "2 2", "4", accepted=("four",))]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "Add.", "case": "2 2", "answer": "4"}))
    assert read_examples(path, {**OWN, "input": "case"}) == READ[:1]


def test_an_error_names_file_line_and_field_and_those_that_there_are(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"instruction": "a", "output": "b"}\n{"instruction": "a", "answer": "b"}\n')
    told = refused(path)
    assert f"data = '{path}': line 2: field 'output' is missing (it has 'instruction', 'answer')" in told
    assert "row 2: field 'output' is missing (it has 'instruction')" in refused([ROWS[0], {"instruction": "a"}])
    assert "row 1: field 'output' is an object, not a text" in refused([{"instruction": "a", "output": {}}])
    assert "no example has the field 'case' (it has 'instruction', 'output')" in refused([ROWS[1]], {"input": "case"})


def test_what_is_shown_of_the_fields_is_bounded_and_no_value_is_among_it() -> None:
    told = refused([{f"field {number} {'x' * 500}": "a secret" for number in range(10_000)}])
    assert len(told) < 2_000
    assert "and more" in told
    assert "secret" not in told


def test_what_is_no_row_is_said() -> None:
    assert "row 1 is a text, not a mapping" in refused(["instruction", "output"])
    assert "row 2 is a tuple, not a mapping" in refused([ROWS[0], ("a", "b")])
    assert "is a mapping of train, test" in refused({"train": ROWS, "test": ROWS})
    assert "holds no examples" in refused(iter([]))
    assert "'int': is neither a path" in refused(7)


def test_rows_without_end_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_examples, "MOST_ROWS", 10)
    assert "more than 10 rows" in refused(iter(lambda: ROWS[0], None))


@pytest.mark.parametrize("fields", [{"question": "instruction"}, {"output": ""}])
def test_only_our_fields_can_be_renamed(fields: dict[str, str]) -> None:
    assert "instruction, input, output" in refused(ROWS, fields, "request.invalid")
