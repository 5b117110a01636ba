"""Sender of alert messages, which runs in every API process. The process that claims a message sends it.

Workers do not send alerts, since an alert must arrive even if no worker runs. Projects take turns, so a dead address
delays only the messages of its project.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import groupby
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi.concurrency import run_in_threadpool

from ferret_api.alerts import webhook
from ferret_api.alerts.addresses import Allowed
from ferret_api.context import Context
from ferret_core.protocol.digest import canonical_json
from ferret_core.protocol.resources.alerts import AlertKind
from ferret_db.engine import stalls
from ferret_db.repositories import alerts
from ferret_db.repositories.alerts import Claimed

logger = logging.getLogger(__name__)

AT_ONCE = 32
"""Maximum number of messages being sent, over all projects."""
MAILS_AT_ONCE = 4
"""Maximum number of e-mails among them. Each takes a thread."""
CLAIM_SECONDS = 60.0
"""Duration of a claim, which is renewed during the attempt. After it, the claiming process is assumed dead."""
STALL_LOOK_SECONDS = 10.0
BACK_OFF_SECONDS = (5, 30, 120, 600, 1800, 3600, 7200, 14400, 21600, 36000)
"""Seconds between attempts, a day in total."""


@asynccontextmanager
async def dispatching(context: Context) -> AsyncGenerator[None]:
    """Sends messages while the block runs."""
    task = asyncio.create_task(Dispatcher(context).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Dispatcher:
    """Loop that sends due messages every ``alert_seconds`` and checks for stalled experiments."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._allowed = Allowed(context.settings.alert_networks)
        self._looked = self._renewed = 0.0
        self._mails = CapacityLimiter(MAILS_AT_ONCE)
        self._under_way: dict[asyncio.Task[None], list[Claimed]] = {}
        self._unsettled = set[str]()

    async def run(self) -> None:
        """Runs until it is cancelled. Messages without a confirmed delivery are sent again later with the same id."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._pause()
                try:
                    await self._renew_claims()
                    await self._look_for_stalls()
                    for _, turn in groupby(await run_in_threadpool(self._claim), lambda each: each.alert.project):
                        claimed = list(turn)
                        self._unsettled |= {each.delivery.id for each in claimed}
                        self._under_way[group.create_task(self._take_turn(claimed))] = claimed
                except Exception:
                    logger.exception("alerts could not be sent; they will be tried again")

    async def _pause(self) -> None:
        seconds = self._context.settings.sizing.alert_seconds
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(seconds)
        self._under_way = {task: claimed for task, claimed in self._under_way.items() if not task.done()}

    async def _take_turn(self, claimed: list[Claimed]) -> None:
        try:
            await asyncio.gather(*map(self._deliver, claimed))
        except Exception:
            logger.exception("alerts could not be sent; they will be tried again")

    async def _renew_claims(self) -> None:
        if self._unsettled and time.monotonic() - self._renewed >= CLAIM_SECONDS / 4:
            self._renewed = time.monotonic()
            await run_in_threadpool(self._renew, frozenset(self._unsettled))

    def _renew(self, delivery_ids: frozenset[str]) -> None:
        with self._context.database.begin() as s:
            alerts.renew(s, delivery_ids, CLAIM_SECONDS)

    async def _look_for_stalls(self) -> None:
        if time.monotonic() - self._looked >= STALL_LOOK_SECONDS:
            self._looked = time.monotonic()
            settings = self._context.settings
            await run_in_threadpool(stalls.announce_stalls, self._context.database, settings.alert_stalled_seconds)

    def _claim(self) -> list[Claimed]:
        under_way = [each for claimed in self._under_way.values() for each in claimed]
        busy = {each.alert.project for each in under_way}
        with self._context.database.read() as s:
            if not alerts.due(s) or len(under_way) >= AT_ONCE:
                return []
        with self._context.database.begin() as s:
            claimed = alerts.claim(s, AT_ONCE - len(under_way), CLAIM_SECONDS, busy)
        return sorted(claimed, key=lambda each: each.alert.project)

    async def _deliver(self, claimed: Claimed) -> None:
        status, error = None, None
        try:
            status = await self._send(claimed)
            if status is not None and not 200 <= status < 300:
                error = f"answered {status}" + (", and redirections are not followed" if 300 <= status < 400 else "")
        except Exception as problem:  # no error may stop other messages
            error = webhook.why(problem)
        self._unsettled.discard(claimed.delivery.id)
        await run_in_threadpool(self._settle, claimed, status, error)

    async def _send(self, claimed: Claimed) -> int | None:
        delivery, alert = claimed
        message = self._with_link(delivery.message)
        if alert.kind == AlertKind.EMAIL:
            from ferret_api.alerts import mail  # imported only if e-mail is sent, which saves memory

            send = partial(mail.send, self._context.settings, alert.address, delivery.id, message)
            await to_thread.run_sync(send, limiter=self._mails)
            return None
        body = canonical_json(message)
        return await webhook.post(alert.address, alert.secret or "", delivery.id, body, self._allowed)

    def _settle(self, claimed: Claimed, status: int | None, error: str | None) -> None:
        delivery = claimed.delivery
        again = BACK_OFF_SECONDS[delivery.attempts - 1] if delivery.attempts <= len(BACK_OFF_SECONDS) else None
        if error is not None:
            logger.warning("alert %s, attempt %d of %s: %s", claimed.alert.id, delivery.attempts, delivery.id, error)
        with self._context.database.begin() as s:
            alerts.settle(s, delivery, status=status, error=error, again_seconds=again)

    def _with_link(self, message: dict[str, Any]) -> dict[str, Any]:
        data, base = message["data"], self._context.settings.public_url
        if base is None or "id" not in data:
            return message
        return {**message, "data": {**data, "url": f"{base}/experiments/{data['id']}"}}
