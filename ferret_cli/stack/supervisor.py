"""Keeps children running, and stops them all."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from types import FrameType

from ferret_cli.stack.child import Child
from ferret_core.protocol.errors import FerretError

GRACE_SECONDS = 10.0
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
HEALTHY_SECONDS = 60.0
STEP_SECONDS = 0.05


@dataclass
class _Watched:
    child: Child
    started: float = 0.0
    crashes: int = 0
    restart_at: float | None = None


class Supervisor:
    """Children in the order they were started. Use it from the main thread, and :meth:`stop` it in the end."""

    def __init__(self, say: Callable[[str], None], pause: float = FIRST_PAUSE) -> None:
        self._say = say
        self._pause = pause
        self._watched: list[_Watched] = []
        self._hurry = False

    def start(self, child: Child) -> None:
        child.start()
        self._watched.append(_Watched(child, time.monotonic()))

    def require_running(self) -> None:
        """Raises with the last lines of its log if a child has ended: for the time until everything is up."""
        for watched in self._watched:
            child = watched.child
            if child.crashed:
                said = child.last_lines() or "  | (nothing)"
                detail = f"{child.name} ended with {_ending(child)} at start; {child.log} says:\n{said}"
                raise FerretError("internal", detail)

    def restart_crashed(self) -> None:
        """Starts children that have ended again, after 1, 2, 4, … 30 seconds, and says so."""
        now = time.monotonic()
        for watched in self._watched:
            if watched.restart_at is not None:
                if now >= watched.restart_at:
                    watched.child.start()
                    watched.started, watched.restart_at = now, None
            elif watched.child.crashed:
                self._plan(watched, now)

    def _plan(self, watched: _Watched, now: float) -> None:
        watched.crashes = 1 if now - watched.started > HEALTHY_SECONDS else watched.crashes + 1
        pause = min(self._pause * 2 ** (watched.crashes - 1), LONGEST_PAUSE)
        watched.restart_at = now + pause
        child = watched.child
        self._say(f"{child.name} ended with {_ending(child)}; starting it again in {pause:.0f} s; {child.log} says:")
        self._say(child.last_lines(5))

    def stop(self) -> None:
        """Ends all children, layer by layer from above: asked, and killed after 10 seconds or at the next Ctrl-C."""
        before = [signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)]
        try:
            for _, layer in groupby(reversed(self._watched), lambda watched: watched.child.layer):
                self._end([watched.child for watched in layer])
        finally:
            for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
                signal.signal(number, handler)

    def _end(self, children: list[Child]) -> None:
        deadline = time.monotonic() + GRACE_SECONDS
        for child in children:
            child.terminate()
        for child in children:
            while not (self._hurry or time.monotonic() > deadline or child.wait(STEP_SECONDS)):
                continue
            child.kill()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._hurry = True


def _ending(child: Child) -> str:
    code = child.exit_code or 0
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
