"""Service files that the systems take, with the same command in each and no code in any."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ferret_cli.os_service import KINDS, TASK, Service

COMMAND = ["/opt/fe rret/python", "-m", "ferret_cli", "join", "https://x", "--name", 'Klinik "A" 100 % $HOME \\']

SERVICE = Service("clinic", COMMAND, Path("/srv/site data"), Path("/srv/home"))


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
    assert "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK\n" in unit.read_text()


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
