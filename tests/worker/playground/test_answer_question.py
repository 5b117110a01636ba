"""When the playground's models leave memory."""

from __future__ import annotations

import threading

from ferret_worker.playground.answer_question import IdleTimer


def test_what_nobody_uses_is_let_go_once() -> None:
    gone = threading.Semaphore(0)
    idle = IdleTimer(0.01, gone.release)
    with idle:
        pass
    assert gone.acquire(timeout=30)
    assert not gone.acquire(timeout=0.1)


def test_nothing_is_let_go_during_a_use_or_soon_after_it() -> None:
    gone = threading.Event()
    idle = IdleTimer(0.05, gone.set)
    with idle:
        pass
    idle._seconds = 3600.0
    with idle:
        assert not gone.wait(0.3), "the timer of the first use ends during the second"
    assert not gone.wait(0.3)
