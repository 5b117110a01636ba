"""A virtual environment, and its pip commands."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scripts.lock import ROOT, Pin


class Environment:
    """The virtual environment in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.python = folder, folder / "bin/python"

    def create(self) -> None:
        """Creates the environment in an emptied folder, so that no package outside the lock remains."""
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.folder)], check=True)

    def offers(self, package: str, version: str) -> bool:
        """Returns True if pip, as configured here, finds ``version`` for this Python and machine."""
        found = self._pip("index", "versions", package, capture_output=True, check=False).stdout
        return version in re.split(r"[,\s]+", found)

    def install_locked(self, pins: Iterable[Pin]) -> None:
        """Installs exactly these, each file only with a hash of the lock.

        The lock is complete, so pip resolves nothing. Builds use the setuptools in the lock.
        """
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("".join(pin.lines for pin in pins))
            file.flush()
            self.install("--require-hashes", "--use-pep517", "--requirement", file.name)

    def install(self, *arguments: str) -> None:
        """Installs the arguments without dependencies. On a terminal, pip shows its progress."""
        quiet = [] if sys.stdout.isatty() else ["--quiet"]
        self._pip("install", *quiet, "--no-compile", "--no-deps", "--no-build-isolation", *arguments)

    def compile(self) -> None:
        """Compiles all installed packages on every core: pip would take one, for more than a minute.

        Errors are ignored: some packages contain files for other versions of Python.
        """
        command = [str(self.python), "-m", "compileall", "-qq", "-j", "0", str(self.folder / "lib")]
        subprocess.run(command, check=False)

    def check(self) -> None:
        """Fails unless every package has its dependencies."""
        self._pip("check", stdout=subprocess.DEVNULL)

    def _pip(self, *arguments: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [str(self.python), "-m", "pip", "--disable-pip-version-check", *arguments]
        return subprocess.run(command, cwd=ROOT, check=check, text=True, **options)
