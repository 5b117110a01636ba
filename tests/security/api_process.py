"""The API as a process of its own: what it takes in time and memory is not the test's."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.api.conftest import ADMIN, NO_BROKER, bearer

START_SECONDS = 60.0


class ApiProcess:
    """``with ApiProcess(home) as api``: the API on the migrated database in ``home``, with the administrator's client.

    ``settings`` are environment variables, ``program`` is what Python runs, ``files`` the soft and the hard limit on
    open files.
    """

    def __init__(self, home: Path, *program: str, files: tuple[int, int] | None = None, **settings: str) -> None:
        self._program = program or ("-m", "ferret_api")
        self._files = files or resource.getrlimit(resource.RLIMIT_NOFILE)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FERRET_")},
            "FERRET_HOME": str(home),
            "FERRET_PORT": "0",
            "FERRET_ADMIN_TOKEN": ADMIN,
            "FERRET_BROKER_URL": NO_BROKER,
            **settings,
        }

    def __enter__(self) -> ApiProcess:
        with ExitStack() as stack:
            self._log = stack.enter_context(tempfile.TemporaryFile("w+"))
            self.process = subprocess.Popen(
                [sys.executable, *self._program],
                env=self._environment,
                stderr=self._log,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, self._files),
            )
            stack.callback(self.process.wait)
            stack.callback(self.process.kill)
            self.url = self._address()
            self.port = int(self.url.rpartition(":")[2])
            self.admin = stack.enter_context(httpx.Client(base_url=self.url, headers=bearer(ADMIN), timeout=60))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _address(self) -> str:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            if found := re.search(r"listens on (http://\S+)", self.said()):
                return found[1]
            time.sleep(0.05)
        raise AssertionError(self.said())

    def said(self) -> str:
        """Its log."""
        self._log.seek(0)
        return self._log.read()

    @property
    def megabytes(self) -> float:
        """Of memory that the process has, the files that it has mapped included."""
        return self._memory("VmRSS")

    @property
    def peak_megabytes(self) -> float:
        """The most that it has had."""
        return self._memory("VmHWM")

    def _memory(self, kind: str) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(rf"{kind}:\s+(\d+) kB", status)[0]) / 1024
