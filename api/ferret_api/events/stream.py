"""Following an experiment's events: the table is polled by number, and no session outlives a poll."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from fastapi.concurrency import run_in_threadpool

from ferret_api.context import Context
from ferret_api.events.schemas import Event
from ferret_db.repositories import events, experiments

_AT_ONCE = 100


async def follow(context: Context, experiment_id: str, after: int) -> AsyncIterator[Event]:
    """Events behind ``after`` in order, until the experiment's last or until the process stops."""
    while not context.stopping.is_set():
        found, over = await run_in_threadpool(_poll, context, experiment_id, after)
        for event in found:
            yield event
            after = event.seq
        if over:
            return
        if len(found) < _AT_ONCE:
            with suppress(TimeoutError):
                await asyncio.wait_for(context.stopping.wait(), context.settings.stream_poll_seconds)


def _poll(context: Context, experiment_id: str, after: int) -> tuple[list[Event], bool]:
    """The next events, and whether the experiment ends with them."""
    with context.database.read() as s:
        experiment = experiments.get(s, experiment_id)
        found = [Event.model_validate(row) for row in events.after(s, experiment_id, after, _AT_ONCE)]
        last = found[-1].seq if found else after
        return found, experiment.state.finished and last >= experiment.event_seq
