"""``ferret site check``: a site's file is read as ``join`` reads it, and nothing of it is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferret_cli.field_mapping import names_of
from tests.refusals import refused


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    rows = [{"question": "Name it.", "case": "fever", "answer": "flu"}, {"question": "Name it.", "answer": "asthma"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_with_names_of_its_own_is_counted(ferret_in_process, records):
    names = ["--field", "instruction=question", "--field", "input=case", "--field", "output=answer"]
    done = ferret_in_process("site", "check", records, *names, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"examples": 2, "without_input": 1, "longest_answer": 6}
    assert "flu" not in done.stdout + done.stderr


def test_a_missing_field_is_told_with_those_there_are_and_what_to_do(ferret_in_process, records):
    done = ferret_in_process("site", "check", records)
    assert done.returncode == 1
    assert "line 1: field 'instruction' is missing (it has 'question', 'case', 'answer')" in done.stderr
    assert "--field" in done.stderr


@pytest.mark.parametrize("given", [["instruction"], ["output=a", "output=b"]])
def test_a_field_is_two_names_and_given_once(given: list[str]) -> None:
    with refused("request.invalid", "OURS=YOURS"):
        names_of(given)
