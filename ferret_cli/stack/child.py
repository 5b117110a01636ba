"""One child process: started with its own log, and never left behind."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ferret_cli.stack.log import Log, Rotation
from ferret_cli.stack.probe import Probe

PR_SET_PDEATHSIG = 1
_libc: ctypes.CDLL | None = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass
class Child:
    """A command under a name; its stdout and stderr go to ``log``, by ``rotation``. Start it from the main thread.

    It has a separate session, so that Ctrl-C in the terminal reaches the supervisor alone, which stops the children in
    order. On Linux the kernel kills it when the supervisor dies. A child of a higher ``layer`` depends on lower layers.
    ``may_end``: exit code 0 is its normal end. ``probe`` checks that it still works. It inherits the open files
    ``descriptors``.
    """

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    layer: int = 0
    may_end: bool = False
    probe: Probe | None = None
    descriptors: tuple[int, ...] = ()
    rotation: Rotation = field(default_factory=Rotation.configured)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _log: Log = field(init=False)

    def __post_init__(self) -> None:
        self._log = Log(self.log, self.rotation)

    def start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            self.command,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=self.descriptors,
            preexec_fn=_die_with(os.getpid()),
        )
        assert self._process.stdout is not None
        self._log.follow(self._process.stdout)

    @property
    def crashed(self) -> bool:
        """True if it has ended unexpectedly."""
        code = self.exit_code
        return code is not None and not (self.may_end and code == 0)

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll() if self._process else None

    @property
    def pid(self) -> int | None:
        """The process id of its last start; None before the first."""
        return self._process.pid if self._process else None

    def last_lines(self, count: int = 15) -> str:
        """Returns the last lines of its output since this start."""
        return "\n".join(f"  | {line}" for line in self._log.last_lines(count))

    def terminate(self) -> None:
        """Requests its end."""
        if self._process and self.exit_code is None:
            self._process.terminate()

    def wait(self, seconds: float) -> bool:
        """Returns True if it ends within ``seconds``."""
        try:
            if self._process:
                self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """Kills it and everything it has started."""
        if self._process and self.exit_code is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _die_with(parent: int) -> Callable[[], None]:
    """Prepares a child before it executes its command: requests a kill by the kernel when ``parent`` dies."""

    def ask() -> None:
        if _libc is None:
            return
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return ask
