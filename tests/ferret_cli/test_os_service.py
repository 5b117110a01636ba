"""Service files that the systems take, with the same command in each and no code in any."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ferret_cli import os_service
from ferret_cli.os_service import FINAL, KINDS, TASK, Service, requested
from ferret_core.protocol.errors import PROBLEMS
from ferret_sdk.participant import round_loop

COMMAND = ["/opt/fe rret/python", "-m", "ferret_cli", "join", "https://x", "--name", 'Klinik "A" 100 % $HOME \\']

PROXY = "http://site:p\"ä%s's@proxy:8080"
SERVICE = Service("clinic", COMMAND, Path("/srv/site data"), {"FERRET_HOME": "/srv/home", "HTTPS_PROXY": PROXY})


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
    assert r'"HTTPS_PROXY=http://site:p\"ä%%s' in unit.read_text()
    assert "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK\n" in unit.read_text()


def test_launchd_gets_the_arguments_as_they_are() -> None:
    agent = plistlib.loads(KINDS["launchd"](SERVICE))
    assert agent["ProgramArguments"] == COMMAND
    assert agent["EnvironmentVariables"] == SERVICE.environment
    assert (agent["Label"], agent["KeepAlive"]) == ("org.ferret.clinic", {"SuccessfulExit": False})


def test_windows_gets_program_and_arguments_apart() -> None:
    task = ElementTree.fromstring(KINDS["windows"](SERVICE))
    action = task.find(f"{{{TASK}}}Actions/{{{TASK}}}Exec")
    assert action is not None
    assert action.findtext(f"{{{TASK}}}Command") == COMMAND[0]
    assert " join https://x --name" in (action.findtext(f"{{{TASK}}}Arguments") or "")
    assert r"\"A\"" in (action.findtext(f"{{{TASK}}}Arguments") or "")


def test_windows_sets_the_environment_before_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seen.py").write_text("import os, sys\nprint(os.environ['HTTPS_PROXY'], *sys.argv[1:])\n")
    service = SERVICE._replace(command=[sys.executable, "-m", "seen", *COMMAND[3:]])
    ran: list[list[str]] = []
    monkeypatch.setattr(os_service, "list2cmdline", lambda arguments: ran.append(list(arguments)) or "")
    KINDS["windows"](service)
    done = subprocess.run([sys.executable, *ran[0]], capture_output=True, text=True, check=True)
    assert done.stdout == f"{PROXY} {' '.join(COMMAND[3:])}\n"


def test_the_service_gets_the_variables_of_join_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "code").write_text("a-code\n")
    given = {"FERRET_CA": "ca.pem", "https_proxy": PROXY, "SSL_CERT_FILE": "all.pem", "FERRET_HOME": str(tmp_path)}
    for name, value in {**given, "FERRET_CODE": "a-code", "FERRET_TOKEN": "t", "FERRET_DEVICE": "", "PATH": ""}.items():
        monkeypatch.setenv(name, value)
    passed = requested("clinic", ["https://x", "--code-file", str(tmp_path / "code")]).environment
    assert {name: value for name, value in passed.items() if name in given} == given
    assert {"FERRET_CODE", "FERRET_TOKEN", "FERRET_DEVICE", "PATH"} & set(passed) == set()


@pytest.mark.parametrize(
    "code", sorted(round_loop.FINAL - {"server.unexpected", "model.invalid"} | {round_loop.ENDING})
)
def test_the_service_is_not_restarted_after_what_holds_for_every_later_round(code: str) -> None:
    """An unexpected answer may be a proxy's, and a model may be repaired."""
    assert PROBLEMS[code].exit in FINAL
