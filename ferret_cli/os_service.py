"""``ferret join`` as a service of the operating system: its validated command, and its file.

Formats: systemd.service(5), launchd.plist(5), and the XML of Windows' Task Scheduler, [MS-TSCH] 2.2.3.
"""

from __future__ import annotations

import os
import plistlib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import list2cmdline
from typing import NamedTuple
from xml.etree import ElementTree  # nosec B405  # to write, not to read

from ferret_cli.secret_input import enrolment_code
from ferret_core.protocol.errors import Exit, FerretError
from ferret_core.system.atomic_files import write_durably
from ferret_sdk.service.server_address import ClientSettings

RESTART_SECONDS = 60
FINAL = (Exit.USAGE, Exit.NOT_FOUND, Exit.AUTH, Exit.CONFLICT)
"""Exit codes of ``ferret join`` after which a restart would change nothing."""
PASSED = re.compile(
    r"FERRET_(HOME|CA|INSECURE_HTTP|DEVICE|KERNEL)|(HTTPS?|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)", re.IGNORECASE
)
"""Variables of ``ferret join`` that the service gets: none with a code or a token."""
TASK = "http://schemas.microsoft.com/windows/2004/02/mit/task"


class Service(NamedTuple):
    """A service. ``command`` runs in ``folder`` with the variables of ``environment``; ``name`` identifies it to the
    system."""

    name: str
    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]


def systemd(service: Service) -> bytes:
    """Returns a unit for ``systemctl --user``.

    A user's manager can apply what seccomp enforces. It cannot mount: a read-only system needs a unit of the system.
    """
    return f"""[Unit]
Description=Ferret participant {_specifiers(service.name)}
StartLimitIntervalSec=0

[Service]
ExecStart={" ".join(_quoted(word).replace("$", "$$") for word in service.command)}
WorkingDirectory={_specifiers(str(service.folder))}
Environment={" ".join(_quoted(f"{name}={value}") for name, value in service.environment.items())}
Restart=on-failure
RestartSec={RESTART_SECONDS}
RestartPreventExitStatus={" ".join(str(int(status)) for status in FINAL)}
UMask=0077
NoNewPrivileges=true
LockPersonality=true
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
SystemCallArchitectures=native

[Install]
WantedBy=default.target
""".encode()


def launchd(service: Service) -> bytes:
    """Returns an agent of the user; launchd restarts it after any failure."""
    log = str(Path(service.environment["FERRET_HOME"]) / f"{service.name}.log")
    return plistlib.dumps(
        {
            "Label": _label(service.name),
            "ProgramArguments": list(service.command),
            "WorkingDirectory": str(service.folder),
            "EnvironmentVariables": dict(service.environment),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": RESTART_SECONDS,
            "Umask": 0o077,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        }
    )


def windows(service: Service) -> bytes:
    """Returns a task at the user's logon; Windows restarts it after any failure.

    A task has no environment in its file, so Python sets it.
    """
    task = ElementTree.Element("Task", {"version": "1.2", "xmlns": TASK})
    trigger = ElementTree.SubElement(ElementTree.SubElement(task, "Triggers"), "LogonTrigger")
    ElementTree.SubElement(trigger, "Enabled").text = "true"
    settings = ElementTree.SubElement(task, "Settings")
    restart = ElementTree.SubElement(settings, "RestartOnFailure")
    for name, value in (("Interval", f"PT{RESTART_SECONDS}S"), ("Count", "999")):
        ElementTree.SubElement(restart, name).text = value
    for name, value in (("MultipleInstancesPolicy", "IgnoreNew"), ("ExecutionTimeLimit", "PT0S")):
        ElementTree.SubElement(settings, name).text = value
    action = ElementTree.SubElement(ElementTree.SubElement(task, "Actions"), "Exec")
    program, *arguments = _with_environment(service)
    values = {"Command": program, "Arguments": list2cmdline(arguments), "WorkingDirectory": str(service.folder)}
    for name, value in values.items():
        ElementTree.SubElement(action, name).text = value
    return ElementTree.tostring(task, encoding="utf-16", xml_declaration=True)


def _with_environment(service: Service) -> list[str]:
    """Returns the command ``python -m MODULE …`` of the service, which sets its environment first."""
    python, _, module, *arguments = service.command
    setting = f"import os, runpy; os.environ.update({dict(service.environment)!r})"
    return [python, "-c", f"{setting}; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)", *arguments]


def _label(name: str) -> str:
    return f"org.ferret.{name}"


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(argument: str) -> str:
    """Quotes one word of a systemd setting: C-style escapes in double quotes, and no specifiers."""
    escaped = _specifiers(argument).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


KINDS = {"systemd": systemd, "launchd": launchd, "windows": windows}


def place(kind: str, name: str) -> Path:
    """Returns the path of the service file ``name`` below a user's home."""
    places = {
        "systemd": f".config/systemd/user/ferret-{name}.service",
        "launchd": f"Library/LaunchAgents/{_label(name)}.plist",
        "windows": f"ferret-{name}.xml",
    }
    return Path(places[kind])


def start(kind: str, name: str) -> str:
    """Returns the command that starts it, now and at each boot or logon."""
    commands = {
        "systemd": f"systemctl --user daemon-reload && systemctl --user enable --now ferret-{name}; "
        "loginctl enable-linger lets it run while nobody is signed in",
        "launchd": f"launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/{_label(name)}.plist",
        "windows": f"schtasks /Create /TN ferret-{name} /XML %USERPROFILE%\\ferret-{name}.xml",
    }
    return commands[kind]


def usual() -> str:
    """Returns this system's kind of service."""
    return {"darwin": "launchd", "win32": "windows"}.get(sys.platform, "systemd")


NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def requested(name: str, arguments: Sequence[str]) -> Service:
    """Returns the service ``name`` of ``ferret join`` with ``arguments``; raises ``request.invalid`` for invalid ones.

    The enrolment code must come from a file, which is read once to check that it holds one.
    """
    if not NAME.fullmatch(name):
        message = "is not a valid service name: use at most 63 small letters, digits and hyphens"
        raise FerretError.of_field("request.invalid", "NAME", name, message)
    if any(argument == "--code" or argument.startswith("--code=") for argument in arguments):
        detail = "a service file must not hold an enrolment code: write it to a file, and give --code-file FILE"
        raise FerretError("request.invalid", detail)
    file = _value("--code-file", arguments)
    if file is None:
        raise FerretError("request.invalid", "give what `ferret join` needs after --, with --code-file FILE")
    enrolment_code(None, Path(file))
    command = [sys.executable, "-m", "ferret_cli", "join", *arguments]
    passed = {variable: value for variable, value in os.environ.items() if value and PASSED.fullmatch(variable)}
    home = ClientSettings().home.expanduser().absolute()
    return Service(name, command, Path.cwd(), {**passed, "FERRET_HOME": str(home)})


def write(place: Path, text: bytes) -> Path:
    """Writes the file atomically, readable only by its owner."""
    place.parent.mkdir(parents=True, exist_ok=True)
    write_durably(place, text)
    return place


def _value(option: str, arguments: Sequence[str]) -> str | None:
    for position, argument in enumerate(arguments):
        if argument.startswith(f"{option}="):
            return argument.partition("=")[2]
        if argument == option and position + 1 < len(arguments):
            return arguments[position + 1]
    return None
