"""Sends contributions, which wait in the spool until they have arrived."""

from __future__ import annotations

from collections.abc import Callable

from ferret_core.failpoints import failpoint
from ferret_core.protocol.errors import FerretError
from ferret_sdk.progress import Progress, RoundReport, Stage, Watcher, log_outages
from ferret_sdk.retry import PATIENT
from ferret_sdk.schemas import Accepted
from ferret_sdk.spool import Spool, Upload
from ferret_sdk.transport import Transport

# Statuses after which the same upload is never taken.
FINAL = frozenset({404, 409, 410, 413, 422})


class Sending:
    """Sends what lies in ``spool``; ``on_acknowledged`` is told of what the server has taken.

    ``rounds`` and ``seconds`` of training are those of what has arrived.
    """

    def __init__(self, transport: Transport, spool: Spool, on_acknowledged: Callable[[Upload], None]) -> None:
        self._transport = transport
        self._spool = spool
        self._on_acknowledged = on_acknowledged
        self.watcher: Watcher = log_outages
        self.rounds, self.seconds = 0, 0.0

    def send(self, upload: Upload) -> RoundReport:
        """Uploads the contribution; it stays in the spool while the server may still take it."""
        path, headers = address_of(upload), headers_of(upload)
        self.watcher(Progress(Stage.UPLOAD, upload.round, 0, len(upload.blob)))
        try:
            answer = self._transport.request("PUT", path, content=upload.blob, headers=headers, attempts=PATIENT)
            _require_own(Accepted.read(answer.json()), upload)
        except FerretError as error:
            if error.code == "lease.lost":
                self._spool.keep(upload._replace(fence=None))
            elif error.problem.status in FINAL:
                self._spool.clear()
            raise
        failpoint("participant.sent")
        self._on_acknowledged(upload)
        self._spool.clear()
        self.rounds += 1
        self.seconds += upload.seconds
        return RoundReport(upload.round, len(upload.blob), upload.seconds, upload.loss)


def address_of(upload: Upload) -> str:
    """Where the contribution is sent with PUT."""
    return f"/participant/assignments/{upload.assignment}/contribution"


def headers_of(upload: Upload) -> dict[str, str]:
    """What goes with the contribution in its request."""
    headers = {
        "Content-Type": "application/octet-stream",
        "Idempotency-Key": upload.key,
        "Ferret-Fence": str(upload.fence),
        "Ferret-Seconds": f"{upload.seconds:.3f}",
    }
    return headers if upload.signature is None else {**headers, "Ferret-Signature": upload.signature}


def _require_own(accepted: Accepted, upload: Upload) -> None:
    """Only the server's own answer frees the spool: another in its place would lose the contribution."""
    if accepted.digest != upload.digest:
        message = f"is not {upload.digest}, which was sent; the contribution is kept"
        raise FerretError.of_field("server.unexpected", "digest", accepted.digest, message)
