"""Where ``ferret join`` takes its code from."""

from __future__ import annotations

import getpass
import io
from pathlib import Path

import pytest

from ferret_cli.secret_input import enrolment_code
from tests.refusals import refused


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_file_a_variable_or_the_keyboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "code"
    file.write_text("from-a-file\n")
    assert enrolment_code(None, file) == "from-a-file"
    assert enrolment_code(" given ", None) == "given"
    monkeypatch.setattr("sys.stdin", Terminal())
    asked: list[str] = []
    monkeypatch.setattr(getpass, "getpass", lambda prompt, stream: asked.append(prompt) or "typed")
    assert enrolment_code(None, None) == "typed"
    assert asked == ["Enrolment code (not shown): "]


@pytest.mark.parametrize("text", ["", "\n", "one two", "x" * 500 + " " + "y" * 600])
def test_a_file_with_something_else_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "code"
    file.write_text(text)
    with refused("request.invalid", "must hold the enrolment code") as caught:
        enrolment_code(None, file)
    assert caught.value.errors[0].field == "--code-file"


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused("request.invalid", "cannot be read"):
        enrolment_code(None, tmp_path / "nowhere")
    with refused("request.invalid", "not both"):
        enrolment_code("given", tmp_path / "code")
    with refused("request.invalid", "is empty"):
        enrolment_code(" ", None)
    monkeypatch.setattr("sys.stdin", io.StringIO("piped"))
    with refused("request.invalid", "FERRET_CODE"):
        enrolment_code(None, None)
