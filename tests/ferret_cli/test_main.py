from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from ferret_cli.main import app, main
from ferret_core import __version__

FULL = Path("/dev/full")


def test_help_loads_nothing_heavy(environment):
    program = """
import sys

for heavy in ("torch", "transformers", "numpy", "pandas", "sqlalchemy", "fastapi"):
    sys.modules[heavy] = None

from ferret_cli.main import main

main()
"""
    shown = subprocess.run([sys.executable, "-c", program, "--help"], env=environment(), capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert "submit" in shown.stdout


PANELS = {
    "Run": "demo serve dashboard plan submit chat simulate tune experiment data",
    "Take part": "join site receipt",
    "Administer": "whoami code participant project user token session alert audit",
    "Operate": "doctor status backup restore migrate api worker storage",
    "Develop Ferret": "dev",
}
WITHOUT_JSON = {"ferret api", "ferret worker", "ferret receipt show"}
"""Two become another program; a receipt is a JSON document in any case."""


def commands(group: Any, path: str = "ferret") -> Iterator[tuple[str, Any]]:
    context = typer.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(commands(get_command(app)))


def test_the_help_groups_commands_by_what_people_do():
    panels = dict[str, list[str]]()
    for name, command in get_command(app).commands.items():
        panels.setdefault(command.rich_help_panel, []).append(name)
    assert {panel: " ".join(names) for panel, names in panels.items()} == PANELS


@pytest.mark.parametrize("path", COMMANDS)
def test_each_command_has_an_example_that_it_understands(path):
    first = (COMMANDS[path].epilog or "").partition("\n")[0]
    assert first.startswith(f"Example: {path}")
    words = shlex.split(first.removeprefix(f"Example: {path}").partition(" > ")[0])
    COMMANDS[path].make_context(path, words)


def test_each_command_with_a_result_prints_it_as_json():
    without = {path for path, command in COMMANDS.items() if all("--json" not in each.opts for each in command.params)}
    assert without == WITHOUT_JSON


def test_a_shell_completes_commands_and_options():
    def completed(line: str) -> list[str]:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1), "_FERRET_COMPLETE": "complete_bash"}
        return CliRunner().invoke(app, [], prog_name="ferret", env=words).stdout.split()

    assert completed("ferret rec") == ["receipt"]
    assert completed("ferret receipt v") == ["verify"]
    assert completed("ferret submit --wat") == ["--watch"]


def test_torchs_threads_are_told_not_to_wait_in_a_loop(monkeypatch):
    """It made a round of the quickstart eight times slower on a busy machine."""
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setattr(sys, "argv", ["ferret", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"


def test_the_version_is_printed(ferret):
    shown = ferret("--version")
    assert (shown.returncode, shown.stdout) == (0, f"ferret {__version__}\n")


@pytest.mark.heavy
def test_no_command_is_loaded_with_torch_or_the_server():
    program = """
import sys, ferret_cli.main
unwanted = {"torch", "numpy", "httpx", "sqlalchemy", "ferret_api", "ferret_worker", "ferret_db"}
print(sorted(unwanted & set(sys.modules)))
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"


def test_submitting_with_another_algorithm_loads_no_torch(spec_file, environment):
    program = f"""
import sys
sys.argv = ["ferret", "submit", {str(spec_file)!r}, "--set", "algorithm.name=topk", "--url", "http://127.0.0.1:1"]
from ferret_cli.main import main
try:
    main()
except SystemExit as ended:
    print(ended.code, sorted({{"torch", "transformers", "pandas", "ferret_db"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, text=True)
    assert done.stdout == "6 []\n", done.stderr


def test_with_json_wrong_usage_is_a_document_too(ferret_in_process):
    done = ferret_in_process("plan", "--json", "--nosuch")
    assert done.returncode == 2
    assert json.loads(done.stdout)["detail"] == "No such option: --nosuch"
    assert "--nosuch" in done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", ["--version", "site log --json", "site log --head x --json"])
def test_a_result_that_stdout_does_not_take_is_one_clear_error(environment, arguments):
    command = [sys.executable, "-m", "ferret_cli", *arguments.split()]
    with FULL.open("w") as full:
        done = subprocess.run(command, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.count("stdout takes no more: No space left on device") == 1
    assert "Traceback" not in done.stderr


def test_without_stdout_no_command_begins(environment, tmp_path):
    command = f"{shlex.quote(sys.executable)} -m ferret_cli site key >&-"
    done = subprocess.run(command, shell=True, env=environment(), stderr=subprocess.PIPE, text=True)
    assert (done.returncode, "stdout is closed" in done.stderr) == (2, True)
    assert not list(tmp_path.rglob("identity.key"))


@pytest.mark.parametrize("arguments", [["sing"], ["submit"], ["submit", "x", "--sing"], ["worker", "sing"]])
def test_wrong_usage_is_exit_2(ferret, arguments):
    done = ferret(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_no_server_is_exit_6_with_the_next_step(ferret, free_port):
    done = ferret("experiment", "list", FERRET_URL=f"http://127.0.0.1:{free_port}")
    assert done.returncode == 6
    assert done.stdout == ""
    assert f"127.0.0.1:{free_port}" in done.stderr
    assert "ferret serve" in done.stderr
    assert "Traceback" not in done.stderr


def test_with_json_stdout_is_one_document_even_on_failure(ferret, spec_file):
    done = ferret("submit", spec_file, "--set", "rounds=0", "--json")
    assert done.returncode == 2
    problem = json.loads(done.stdout)
    assert problem["code"] == "spec.invalid"
    assert problem["errors"][0] | {"message": ""} == {"field": "rounds", "value": 0, "message": ""}
    assert "rounds = 0" in done.stderr


def test_colour_only_where_it_is_wanted(ferret):
    assert "\x1b[" not in ferret("submit", "missing.toml").stderr


@pytest.mark.parametrize("options", [["--debug", "submit"], ["submit"]])
def test_a_traceback_only_for_debugging(ferret, options):
    asked = "--debug" in options
    assert ("Traceback" in ferret(*options, "missing.toml").stderr) is asked
    assert "Traceback" in ferret("submit", "missing.toml", FERRET_DEBUG="1").stderr


def test_without_the_server_packages_the_command_to_install_is_named(tmp_path, environment):
    """As a participant's installation is: the same command, but no ferret_api, ferret_worker or ferret_db to import."""
    program = tmp_path / "participant.py"
    program.write_text(
        """
import sys
from importlib.machinery import PathFinder

class Absent(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.split(".")[0] not in {"ferret_api", "ferret_worker", "ferret_db"}:
            return super().find_spec(name, path, target)

sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not PathFinder and "editable" not in repr(finder)]
sys.meta_path.append(Absent)
from ferret_cli.main import main
main()
"""
    )
    for arguments in (["serve"], ["demo"], ["api"], ["worker", "train"], ["migrate"]):
        command = [sys.executable, program, *arguments]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 1
        assert "pip install ferret-service" in done.stderr
    assert not (tmp_path / ".ferret").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["participant.py"]
