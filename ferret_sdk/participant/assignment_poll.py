"""Polling the server for work, across outages of any length."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import Lease, NextAssignment
from ferret_sdk.http.retry import ATTEMPTS, AWAY, Outage, retry_after
from ferret_sdk.http.transport import Answer, Transport, read_model
from ferret_sdk.participant.membership import Membership
from ferret_sdk.service.progress import Progress, Stage, Watcher

SHORTEST_PAUSE = 0.01
LONGEST_PAUSE = 300.0
"""Maximum seconds between two polls, whatever the server requests."""
LONGEST_HOLD = 30
"""Maximum seconds that the server may hold a poll: most proxies end a connection that is silent for 60."""
TAG = re.compile(r'(W/)?"[\x21\x23-\x7e]{0,200}"')


class Known(NamedTuple):
    """A response without an assignment, and its entity tag."""

    tag: str
    poll: NextAssignment


class AssignmentPoll:
    """Polls for work of ``member``; after ``give_up_after`` seconds without a server, raises ``server.unreachable``."""

    def __init__(self, transport: Transport, member: Membership, watcher: Watcher, give_up_after: float | None) -> None:
        self._transport = transport
        self._member = member
        self._watcher = watcher
        self._give_up_after = give_up_after
        self._known: Known | None = None
        self._hold = LONGEST_HOLD

    def ask(self) -> NextAssignment:
        """Returns the next poll's response, however long an outage takes."""
        outage: Outage | None = None
        while True:
            try:
                return self._ask()
            except FerretError as error:
                if error.code not in AWAY:
                    raise
                outage = outage or Outage(self._give_up_after)
                self._watcher(Progress(Stage.OUTAGE, done=outage.seconds))
                outage.wait(error)

    def wait(self, poll: NextAssignment) -> None:
        """Waits until the server wants the next poll."""
        if (waiting := poll.waiting) is not None:
            self._watcher(Progress(Stage.WAIT, waiting.round, waiting.done, waiting.total, waiting.awaited))
        time.sleep(min(max(poll.retry_after_seconds, SHORTEST_PAUSE), LONGEST_PAUSE))

    def _ask(self) -> NextAssignment:
        """Sends one poll, which the server may hold until there is news."""
        if (known := self._known) is not None:
            try:
                answer = self._request(known.tag, self._hold, attempts=1)
                self._hold = min(self._hold + 1, LONGEST_HOLD)
                return self._read(answer)
            except FerretError as error:
                if error.code not in AWAY:
                    raise
                # Either a proxy ends silent connections, or the server is away. A poll without a hold shows which.
                poll = self._read(self._request(None, 0, attempts=ATTEMPTS))
                self._hold = max(1, self._hold // 2)
                return poll
        return self._read(self._request(None, 0, attempts=ATTEMPTS))

    def _request(self, tag: str | None, hold: int, attempts: int) -> Answer:
        headers = {"Prefer": f"wait={hold or LONGEST_HOLD}"} | ({"If-None-Match": tag} if tag else {})
        return self._transport.request("GET", "/participant/assignment", headers=headers, attempts=attempts)

    def _read(self, answer: Answer) -> NextAssignment:
        if answer.unchanged and self._known is not None:
            pause = retry_after(answer.headers, LONGEST_PAUSE)
            poll = self._known.poll
            return poll if pause is None else poll.model_copy(update={"retry_after_seconds": pause})
        poll = read_model(NextAssignment, answer.json())
        self._require_own(poll.assignment)
        tag = answer.headers.get("etag", "")
        idle = poll.assignment is None and poll.step is None
        known = poll.model_copy(update={"prekeys": None})  # the number of keys changes without a new tag
        self._known = Known(tag, known) if idle and TAG.fullmatch(tag) else None
        return poll

    def _require_own(self, lease: Lease | None) -> None:
        """Refuses work of another experiment or participant: ``server.unexpected``."""
        if lease is None:
            return
        asked = {"task.experiment": lease.task.experiment, "task.participant": lease.task.participant}
        own = {"task.experiment": self._member.experiment, "task.participant": self._member.name}
        for field, value in asked.items():
            if value != own[field]:
                raise FerretError.of_field("server.unexpected", field, value, f"this participant has {own[field]!r}")
