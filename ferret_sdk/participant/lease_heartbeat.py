"""A lease's heartbeat in a separate thread while the participant trains."""

from __future__ import annotations

import threading
from typing import Self

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import Lease
from ferret_sdk.http.retry import AWAY
from ferret_sdk.http.transport import Transport

SHORTEST_PAUSE = 0.1


class Heartbeat:
    """Extends the lease every third of its length inside a ``with`` block.

    :meth:`check`, called at every training step, raises the error that ended the lease, so lost work stops early. An
    outage does not end the lease: the server decides about it when it is back.
    """

    def __init__(self, transport: Transport, lease: Lease) -> None:
        self._transport = transport
        self._lease = lease
        self._stop = threading.Event()
        self._lost: FerretError | None = None
        self._thread = threading.Thread(target=self._beat, name="ferret-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        if self._lost is not None:
            raise self._lost

    def _beat(self) -> None:
        path = f"/participant/assignments/{self._lease.id}/heartbeat"
        while not self._stop.wait(max(self._lease.lease_seconds / 3, SHORTEST_PAUSE)):
            try:
                self._transport.post(path, {"fence": self._lease.fence})
            except FerretError as error:
                if error.code not in AWAY:
                    self._lost = error
                    return
