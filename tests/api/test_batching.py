"""Requests are worked on together while earlier ones are, and each gets its own answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
from sqlalchemy.exc import OperationalError

from ferret_api import batching
from ferret_api.batching import MOST, Batcher
from ferret_core.protocol.errors import FerretError


class Work:
    """Doubles numbers, once it may; an odd one is an error of its own, and 13 breaks the whole."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may = threading.Event()

    def __call__(self, numbers: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(numbers))
        assert self.may.wait(10)
        if 13 in numbers:
            raise ZeroDivisionError("13")
        if 0 in numbers:
            raise OperationalError("SELECT", {}, Exception("the server closed the connection"))
        return [2 * number if number % 2 == 0 else FerretError("internal", str(number)) for number in numbers]


async def answers(work: Work, first: int, *others: int) -> list[int | BaseException]:
    """Of all, where the others come while the first is worked on."""
    gathered: Batcher[int, int] = Batcher(work)
    asked = [asyncio.create_task(gathered.do(first))]
    while not work.batches:
        await asyncio.sleep(0.001)
    asked += [asyncio.create_task(gathered.do(number)) for number in others]
    await asyncio.sleep(0)
    work.may.set()
    return await asyncio.gather(*asked, return_exceptions=True)


def test_what_comes_meanwhile_is_worked_on_together() -> None:
    work = Work()
    assert asyncio.run(answers(work, 2, 4, 6, 8)) == [4, 8, 12, 16]
    assert work.batches == [[2], [4, 6, 8]]


def test_batches_follow_each_other_no_closer_than_they_must(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes soon after a batch has begun waits for what comes a moment later."""
    monkeypatch.setattr(batching, "EVERY_SECONDS", 0.5)

    async def one_after_another(work: Work) -> list[int]:
        gathered: Batcher[int, int] = Batcher(work)
        first = await gathered.do(2)
        second = asyncio.create_task(gathered.do(4))
        await asyncio.sleep(0.05)
        return [first, *await asyncio.gather(second, gathered.do(6))]

    work = Work()
    work.may.set()
    assert asyncio.run(one_after_another(work)) == [4, 8, 12]
    assert work.batches == [[2], [4, 6]]


def test_an_error_is_its_own_ones() -> None:
    first, odd, last = asyncio.run(answers(Work(), 2, 3, 4))
    assert (first, last) == (4, 8)
    assert isinstance(odd, FerretError)


def test_what_breaks_the_whole_breaks_itself_alone() -> None:
    work = Work()
    first, broken, last = asyncio.run(answers(work, 2, 13, 4))
    assert (first, last) == (4, 8)
    assert isinstance(broken, ZeroDivisionError)
    assert work.batches == [[2], [13, 4], [13], [4]]


def test_a_lost_database_is_not_asked_again_for_each() -> None:
    work = Work()
    _, *lost = asyncio.run(answers(work, 2, 0, 4))
    assert [type(error) for error in lost] == [OperationalError, OperationalError]
    assert work.batches == [[2], [0, 4]]


def test_no_more_than_some_are_worked_on_at_a_time() -> None:
    work = Work()
    asyncio.run(answers(work, 2, *[4] * (MOST + 1)))
    assert [len(batch) for batch in work.batches] == [1, MOST, 1]


def test_who_has_gone_keeps_nobody_waiting() -> None:
    async def gone() -> int:
        work = Work()
        gathered: Batcher[int, int] = Batcher(work)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(gathered.do(2), 0.01)
        work.may.set()
        return await gathered.do(4)

    assert asyncio.run(gone()) == 8
