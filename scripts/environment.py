"""A virtual environment, and what its pip is asked to do."""

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
        """Empties the folder first, so that nothing stays that the lock does not name."""
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.folder)], check=True)

    def offers(self, package: str, version: str) -> bool:
        """Whether pip, as it is configured here, finds ``version`` for this Python and machine."""
        found = self._pip("index", "versions", package, capture_output=True, check=False).stdout
        return version in re.split(r"[,\s]+", found)

    def install_locked(self, pins: Iterable[Pin]) -> None:
        """Exactly these, each file only with a hash of the lock.

        The lock is complete, so pip resolves nothing; a build uses the setuptools that the lock names.
        """
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("".join(pin.lines for pin in pins))
            file.flush()
            self.install("--require-hashes", "--use-pep517", "--requirement", file.name)

    def install(self, *arguments: str) -> None:
        """What the arguments name and nothing that it depends on; on a terminal, pip shows its progress."""
        quiet = [] if sys.stdout.isatty() else ["--quiet"]
        self._pip("install", *quiet, "--no-compile", "--no-deps", "--no-build-isolation", *arguments)

    def compile(self) -> None:
        """Bytecode of all that is installed, on every core: pip would take one, for more than a minute.

        What cannot be compiled is left: some packages bring files for other versions of Python.
        """
        command = [str(self.python), "-m", "compileall", "-qq", "-j", "0", str(self.folder / "lib")]
        subprocess.run(command, check=False)

    def check(self) -> None:
        """Fails unless every package has what it depends on."""
        self._pip("check", stdout=subprocess.DEVNULL)

    def _pip(self, *arguments: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [str(self.python), "-m", "pip", "--disable-pip-version-check", *arguments]
        return subprocess.run(command, cwd=ROOT, check=check, text=True, **options)
