"""Commands of other distributions, as if they were installed: an entry point is all that tells of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ferret_cli import extensions
from ferret_cli.main import app
from ferret_core.protocol.errors import FerretError

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """``install("hello", "package.module:app")``: the only extension there is."""

    def entry(name: str, value: str) -> None:
        points = [EntryPoint(name=name, value=value, group=extensions.GROUP)]
        monkeypatch.setattr(extensions, "entry_points", lambda group: points if group == extensions.GROUP else [])
        extensions._installed.cache_clear()

    yield entry
    extensions._installed.cache_clear()


@pytest.fixture
def greeting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A module with one command."""
    (tmp_path / "greeting.py").write_text(
        """
import typer

app = typer.Typer(add_completion=False)


@app.command()
def greet(name: str) -> None:
    \"\"\"Greet somebody.\"\"\"
    print(f"good morning, {name}")
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "greeting", raising=False)
    return "greeting:app"


def test_an_installed_command_is_listed_and_run(install: Install, greeting: str) -> None:
    install("hello", greeting)
    listed = CliRunner().invoke(app, ["dev", "--help"]).stdout
    assert "Greet somebody." in listed
    assert CliRunner().invoke(app, ["dev", "hello", "Ada"]).stdout == "good morning, Ada\n"


def test_an_entry_whose_package_is_gone_does_not_break_the_help(install: Install) -> None:
    install("bench", "ferret_of_a_folder_that_was_moved.commands:app")
    shown = CliRunner().invoke(app, ["dev", "--help"])
    assert shown.exit_code == 0
    assert "bench" not in shown.stdout


@pytest.mark.parametrize("name", ["bench", "paper"])
def test_ferrets_own_commands_that_are_not_installed_say_how_to_install_them(install: Install, name: str) -> None:
    install("bench" if name == "paper" else "paper", "ferret_of_a_folder_that_was_moved.commands:app")
    error = CliRunner().invoke(app, ["dev", name, "--help"]).exception
    assert isinstance(error, FerretError)
    assert error.code == "dependency.missing"
    assert "pip install" in error.detail


def test_an_unknown_command_is_wrong_usage(install: Install, greeting: str) -> None:
    install("hello", greeting)
    refused = CliRunner().invoke(app, ["dev", "helo"])
    assert refused.exit_code == 2
    assert "helo" in refused.stderr
