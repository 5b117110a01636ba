"""The lock, resolved by uv for every platform: ``requirements.txt`` runs Ferret, ``requirements-dev.txt`` tests it too.

Both pin every direct and indirect dependency with its hashes, and record the requirements that they were made from.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RUNTIME, DEVELOPMENT = "requirements.txt", "requirements-dev.txt"
BUILD = ["hatchling", "editables", "setuptools"]  # of Ferret, and of rouge-score, which is published as source only
SOURCES = {
    RUNTIME: ["./packaging[train,hub,privacy]", ".[s3,tracing]", *BUILD],
    DEVELOPMENT: [
        "./packaging[train,hub,mlflow,notebook,privacy,tensorboard,tune,wandb]",
        ".[dev]",
        "./bench",
        *BUILD,
    ],
}
OURS = ["ferret-participant", "ferret-service", "ferret-bench"]
OPTIONS = [
    "--quiet",
    "--no-config",  # the machine's
    "--system-certs",
    "--default-index=https://pypi.org/simple",
    "--python-version=3.11",
    "--universal",
    "--generate-hashes",
    "--no-annotate",
    "--no-header",
]
PROJECTS = ["pyproject.toml", "packaging/pyproject.toml", "bench/pyproject.toml"]
RENEW = "run `make lock` and commit requirements*.txt"


class Pin(NamedTuple):
    """A package of the lock with its version, and its lines; some have one version per platform."""

    name: str
    version: str
    lines: str


def pins(name: str) -> list[Pin]:
    """Returns the packages in the lock file ``name``."""
    found = re.finditer(r"^([\w.-]+)==(\S+).*\n(?: .*\n)*", (ROOT / name).read_text(), re.MULTILINE)
    return [Pin(match[1], match[2], match[0]) for match in found]


def stamp(root: Path = ROOT) -> str:
    """Returns the first line of a lock: a digest of its requirements and of the three pyproject.toml files'."""
    wanted: list[object] = [SOURCES]
    for name in PROJECTS:
        project = tomllib.loads((root / name).read_text())
        fields = ("requires-python", "dependencies", "optional-dependencies")
        wanted.append([project["build-system"]["requires"], *(project["project"].get(field) for field in fields)])
    return f"# requirements sha256:{hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()}"


def stale(root: Path = ROOT) -> list[str]:
    """Returns the lock files that are missing or were made from other requirements. Needs neither uv nor a network."""
    wanted = stamp(root)
    return [name for name in SOURCES if not (root / name).exists() or _first_line(root / name) != wanted]


def write(name: str, target: Path, *options: str) -> None:
    """Resolves into ``target``. Existing pins stay if the requirements allow them."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "-", f"--output-file={target}", *OPTIONS, *options]
    command += [f"--no-emit-package={package}" for package in OURS]
    subprocess.run(command, cwd=ROOT, input="\n".join(SOURCES[name]), text=True, check=True, stdout=subprocess.DEVNULL)
    target.write_text(f"{stamp()}\n# Made by `make lock`; do not edit.\n{target.read_text()}")


def renew(upgrade: bool) -> None:
    """Writes both files. The second takes the versions of the first."""
    for name in SOURCES:
        write(name, ROOT / name, *["--upgrade"] * upgrade, *_same_as_runtime(ROOT, name))


def changed() -> list[str]:
    """Returns the lock files that uv would write differently. Newer releases on the index change nothing."""
    with tempfile.TemporaryDirectory() as folder:
        for name in SOURCES:
            target = Path(shutil.copy(ROOT / name, folder))
            write(name, target, *_same_as_runtime(target.parent, name))
        return [name for name in SOURCES if (ROOT / name).read_text() != (Path(folder) / name).read_text()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the lock is stale")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that the requirements allow")
    arguments = parser.parse_args()
    try:
        if not arguments.check:
            renew(arguments.upgrade)
        elif names := stale() or changed():
            sys.exit(f"stale lock: {', '.join(names)} and the pyproject.toml files disagree; {RENEW}")
    except subprocess.CalledProcessError:
        sys.exit("uv could not resolve the lock; see its message above")


def _same_as_runtime(folder: Path, name: str) -> list[str]:
    return [f"--constraints={folder / RUNTIME}"] if name == DEVELOPMENT else []


def _first_line(path: Path) -> str:
    return path.read_text().partition("\n")[0]


if __name__ == "__main__":
    main()
