from __future__ import annotations

import re
from pathlib import Path

import pytest

from ferret_core.protocol.errors import NEXT_STEPS, PROBLEMS, Exit, FerretError, FieldError

ROOT = Path(__file__).parents[3]


def test_an_error_names_the_field_the_value_and_the_next_step() -> None:
    error = FerretError.of_field("spec.invalid", "algorithm.K", 0, "must be at least 1")
    assert str(error) == "algorithm.K = 0: must be at least 1"
    assert error.to_json()["errors"] == [{"field": "algorithm.K", "value": 0, "message": "must be at least 1"}]
    assert (error.problem.status, error.problem.exit) == (422, Exit.USAGE)


def test_an_unknown_code_cannot_be_raised() -> None:
    with pytest.raises(KeyError):
        FerretError("no.such_code", "…")


def test_every_problem_is_raised_somewhere_and_every_raised_code_is_known() -> None:
    packages = ["ferret_core", "ferret_db", "api", "worker", "ferret_sdk", "ferret_cli"]
    catalog = ROOT / "ferret_core/protocol/errors.py"
    sources = [path.read_text() for package in packages for path in (ROOT / package).rglob("*.py") if path != catalog]
    text = "\n".join(sources)
    assert [code for code in PROBLEMS if f'"{code}"' not in text] == []
    raised = set(re.findall(r'FerretError(?:\.of_field)?\(\s*"([a-z._]+)"', text))
    assert raised <= set(PROBLEMS)


def test_a_traceback_says_code_fields_and_what_to_do_next() -> None:
    error = FerretError(
        "experiment.not_found", "no such one", [FieldError(field="ID", value="exp", message="is short")]
    )
    assert error.__notes__ == ["code: experiment.not_found\n  ID = 'exp': is short\nnext: " + NEXT_STEPS[error.code]]
    assert repr(error) == (
        "FerretError('experiment.not_found', 'no such one', fields=['ID'], "
        "next='list the experiments: ferret experiment list')"
    )
    assert repr(FerretError("quorum.missed", "1 of 3")) == "FerretError('quorum.missed', '1 of 3')"
