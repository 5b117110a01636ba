"""Service files that the systems take, with the same command in each and no code in any."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ferret_cli.service_file import KINDS, TASK, Service, place

COMMAND = ["/opt/fe rret/python", "-m", "ferret_cli", "join", "https://x", "--name", 'Klinik "A" 100 % $HOME \\']
SERVICE = Service("clinic", COMMAND, Path("/srv/site data"), Path("/srv/home"))
JOIN = ("https://ferret.example.org", "--data", "records.jsonl")


@pytest.mark.heavy
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_takes_the_unit_and_runs_these_arguments(tmp_path: Path) -> None:
    program = tmp_path / "pro gram"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "ferret-clinic.service"
    unit.write_bytes(KINDS["systemd"](SERVICE._replace(command=[str(program), *COMMAND[1:]], folder=tmp_path)))
    found = subprocess.run(
        ["systemd-analyze", "verify", "--user", unit],
        env={"XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert found.stderr == "", unit.read_text()
    assert r'"Klinik \"A\" 100 %% $$HOME \\"' in unit.read_text()
    assert "RestartPreventExitStatus=2 3 4 5\n" in unit.read_text()


def test_launchd_gets_the_arguments_as_they_are() -> None:
    agent = plistlib.loads(KINDS["launchd"](SERVICE))
    assert agent["ProgramArguments"] == COMMAND
    assert (agent["Label"], agent["KeepAlive"]) == ("org.ferret.clinic", {"SuccessfulExit": False})


def test_windows_gets_program_and_arguments_apart() -> None:
    task = ElementTree.fromstring(KINDS["windows"](SERVICE))
    action = task.find(f"{{{TASK}}}Actions/{{{TASK}}}Exec")
    assert action is not None
    assert action.findtext(f"{{{TASK}}}Command") == COMMAND[0]
    assert (action.findtext(f"{{{TASK}}}Arguments") or "").startswith("-m ferret_cli join https://x --name")
    assert r"\"A\"" in (action.findtext(f"{{{TASK}}}Arguments") or "")


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_writes_a_file_for_its_owner_and_no_code(
    kind: str, ferret_in_process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "code.txt").write_text("a-secret-code\n")
    done = ferret_in_process("site", "install", "clinic", "--kind", kind, "--", *JOIN, "--code-file", "code.txt")
    assert done.returncode == 0, done.stderr
    file = tmp_path / place(kind, "clinic")
    assert str(file) in done.stderr
    assert b"code.txt" in file.read_bytes().replace(b"\0", b"")
    assert b"a-secret-code" not in file.read_bytes().replace(b"\0", b"")
    assert file.stat().st_mode & 0o077 == 0


def test_print_shows_it_and_writes_nothing(ferret_in_process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "code.txt").write_text("a-secret-code\n")
    asked = ("site", "install", "clinic", "--kind", "systemd", "--print", "--", *JOIN, "--code-file=code.txt")
    done = ferret_in_process(*asked)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "[Unit]")
    assert not (tmp_path / ".config").exists()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("Clinic 7", "--", *JOIN, "--code-file", "code.txt"), "no name for a service"),
        (("clinic", "--", *JOIN, "--code", "a-secret-code"), "no place for an enrolment code"),
        (("clinic", "--", *JOIN), "with --code-file FILE"),
        (("clinic", "--", *JOIN, "--code-file", "nowhere.txt"), "cannot be read"),
        (("clinic", "--kind", "upstart", "--", *JOIN), "choose one of systemd, launchd, windows"),
    ],
)
def test_what_cannot_be_installed_is_said(
    asked: tuple[str, ...], message: str, ferret_in_process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "code.txt").write_text("a-secret-code\n")
    done = ferret_in_process("site", "install", *asked)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "a-secret-code" not in done.stderr
