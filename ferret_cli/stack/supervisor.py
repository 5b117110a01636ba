"""Supervisor of children: keeps them running, and stops them all."""

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
START_SECONDS = 60.0
"""Seconds until a child's first sign of life, which comes before torch is loaded."""
SILENT_SECONDS = 30.0
HUNG_GRACE_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL for a hanging child."""


def silent_after(lease_seconds: float) -> float:
    """Returns the seconds without a sign of life after which a child hangs: 30, or half a lease if leases are short,
    so that its work is repeated within two leases.
    """
    return min(SILENT_SECONDS, lease_seconds / 2)


@dataclass
class _Watched:
    child: Child
    started: float
    alive_at: float | None = None
    crashes: int = 0
    kill_at: float | None = None
    restart_at: float | None = None


class Supervisor:
    """Children in the order of their start. Use it from the main thread, and :meth:`stop` it at the end.

    A child that has ended is restarted after ``pause`` seconds, doubled each time to 30 at most. One without a sign of
    life for ``silent`` seconds is ended first.
    """

    def __init__(self, say: Callable[[str], None], pause: float = FIRST_PAUSE, silent: float = SILENT_SECONDS) -> None:
        self._say = say
        self._pause = pause
        self._silent = silent
        self._watched: list[_Watched] = []
        self._looked = time.monotonic()
        self._hurry = False

    def start(self, child: Child) -> None:
        child.start()
        self._watched.append(_Watched(child, time.monotonic()))

    def require_running(self) -> None:
        """Raises with the last lines of its log if a child has ended; used until everything is up."""
        for watched in self._watched:
            child = watched.child
            if child.crashed:
                said = child.last_lines() or "  | (nothing)"
                detail = f"{child.name} ended with {_ending(child)} at start; last lines of {child.log}:\n{said}"
                raise FerretError("internal", detail)

    def supervise(self) -> None:
        """Checks every child once: call it several times a second."""
        now = time.monotonic()
        away, self._looked = now - self._looked, now
        for watched in self._watched:
            if away > self._silent / 2:  # nobody looked: the supervisor itself was stopped, or was busy
                watched.alive_at = watched.alive_at and now
            if watched.restart_at is not None:
                if now >= watched.restart_at:
                    watched.child.start()
                    watched.started, watched.alive_at, watched.restart_at = now, None, None
            elif watched.child.crashed or (watched.kill_at is not None and watched.child.exit_code is not None):
                self._plan(watched, now)
            elif watched.kill_at is not None:
                if now >= watched.kill_at:
                    watched.child.kill()
            elif self._hangs(watched, now):
                self._end_hung(watched, now)

    def _hangs(self, watched: _Watched, now: float) -> bool:
        probe = watched.child.probe
        if probe is None or watched.child.exit_code is not None:
            return False
        if probe():
            watched.alive_at = now
        if watched.alive_at is None:
            return now - watched.started > START_SECONDS
        return now - watched.alive_at > self._silent

    def _end_hung(self, watched: _Watched, now: float) -> None:
        quiet = now - (watched.alive_at or watched.started)
        self._say(f"{watched.child.name} hangs: no sign of life for {quiet:.0f} s; ending it")
        watched.child.terminate()
        watched.kill_at = now + HUNG_GRACE_SECONDS

    def _plan(self, watched: _Watched, now: float) -> None:
        watched.crashes = 1 if now - watched.started > HEALTHY_SECONDS else watched.crashes + 1
        pause = min(self._pause * 2 ** (watched.crashes - 1), LONGEST_PAUSE)
        watched.restart_at, watched.kill_at = now + pause, None
        child = watched.child
        _reset(child)
        self._say(
            f"{child.name} ended with {_ending(child)}; starting it again in {pause:.0f} s; last lines of {child.log}:"
        )
        self._say(child.last_lines(5))

    def stop(self) -> None:
        """Stops all children, the top layer first: SIGTERM, then SIGKILL after 10 seconds or at the next Ctrl-C."""
        ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = [signal.signal(number, self._on_signal) for number in ending]
        try:
            for _, layer in groupby(reversed(self._watched), lambda watched: watched.child.layer):
                self._end([watched.child for watched in layer])
            for watched in self._watched:
                _reset(watched.child)
        finally:
            for number, handler in zip(ending, before, strict=True):
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


def _reset(child: Child) -> None:
    if child.probe is not None:
        child.probe.reset()


def _ending(child: Child) -> str:
    code = child.exit_code or 0
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
