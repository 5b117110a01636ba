"""Asking the server for work, across outages of any length."""

from __future__ import annotations

import time

from ferret_core.protocol.errors import FerretError
from ferret_sdk.membership import Membership
from ferret_sdk.progress import Progress, Stage, Watcher
from ferret_sdk.retry import AWAY, Outage
from ferret_sdk.schemas import Lease, Poll
from ferret_sdk.transport import Transport

SHORTEST_PAUSE = 0.01
LONGEST_PAUSE = 300.0
"""Between two questions for work, whatever the server asks for, in seconds."""


class Polling:
    """Asks for the work of ``member``; a server that is away for longer than ``give_up_after`` seconds, if given, is
    ``server.unreachable``."""

    def __init__(self, transport: Transport, member: Membership, watcher: Watcher, give_up_after: float | None) -> None:
        self._transport = transport
        self._member = member
        self._watcher = watcher
        self._give_up_after = give_up_after

    def ask(self) -> Poll:
        """What there is to do, asked for as long as an outage may take."""
        outage: Outage | None = None
        while True:
            try:
                poll = Poll.read(self._transport.get("/participant/assignment"))
                self._require_own(poll.assignment)
                return poll
            except FerretError as error:
                if error.code not in AWAY:
                    raise
                outage = outage or Outage(self._give_up_after)
                self._watcher(Progress(Stage.OUTAGE, done=outage.seconds))
                outage.wait(error)

    def wait(self, poll: Poll) -> None:
        """Until the server wants to be asked again."""
        if (waiting := poll.waiting) is not None:
            self._watcher(Progress(Stage.WAIT, waiting.round, waiting.done, waiting.total, waiting.awaited))
        time.sleep(min(max(poll.retry_after_seconds, SHORTEST_PAUSE), LONGEST_PAUSE))

    def _require_own(self, lease: Lease | None) -> None:
        """Refuses work of another experiment or participant: ``server.unexpected``."""
        if lease is None:
            return
        asked = {"task.experiment": lease.task.experiment, "task.participant": lease.task.participant}
        own = {"task.experiment": self._member.experiment, "task.participant": self._member.name}
        for field, value in asked.items():
            if value != own[field]:
                raise FerretError.of_field("server.unexpected", field, value, f"this participant has {own[field]!r}")
