"""Sending of contributions, which wait in the spool until they have arrived."""

from __future__ import annotations

from collections.abc import Callable

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import ContributionReceipt, UploadProgress
from ferret_core.system.failpoints import failpoint
from ferret_sdk.http.retry import PATIENT, Retry, Transient
from ferret_sdk.http.transport import Answer, Transport, read_model
from ferret_sdk.participant.spool import Spool, Upload
from ferret_sdk.service.progress import Progress, RoundReport, Stage, Watcher, log_outages

# Statuses after which the same upload is never accepted.
FINAL = frozenset({404, 409, 410, 413, 422})
# Parts to send again, from the server's offset.
AGAIN = frozenset({"upload.offset", "upload.corrupt"})


class Uploader:
    """Sends the upload in ``spool``; ``on_acknowledged`` receives each acknowledged one.

    ``rounds`` and ``seconds`` of training count acknowledged ones.
    """

    def __init__(self, transport: Transport, spool: Spool, on_acknowledged: Callable[[Upload], None]) -> None:
        self._transport = transport
        self._spool = spool
        self._on_acknowledged = on_acknowledged
        self.watcher: Watcher = log_outages
        self.rounds, self.seconds = 0, 0.0

    def send(self, upload: Upload) -> RoundReport:
        """Uploads the contribution. It stays in the spool while the server may still accept it."""
        try:
            part_bytes = upload.part_bytes or upload.size
            answer = self._whole(upload) if upload.size <= part_bytes else self._in_parts(upload, part_bytes)
            _require_own(read_model(ContributionReceipt, answer.json()), upload)
        except FerretError as error:
            if error.code == "lease.lost":
                self._spool.note(upload._replace(fence=None))
            elif error.problem.status in FINAL and error.code not in AGAIN:
                self._spool.clear()
            raise
        failpoint("participant.sent")
        self._on_acknowledged(upload)
        self._spool.clear()
        self.rounds += 1
        self.seconds += upload.seconds
        return RoundReport(upload.round, upload.size, upload.seconds, upload.loss)

    def _whole(self, upload: Upload) -> Answer:
        self._tell(upload, 0)
        content = self._spool.read(0, upload.size)
        return self._transport.request(
            "PUT", address_of(upload), content=content, headers=headers_of(upload), attempts=PATIENT
        )

    def _in_parts(self, upload: Upload, part_bytes: int) -> Answer:
        """Sends the parts and returns the last response. After every interruption it requests the server's offset.

        A server that loses received parts is given up after as many failures as one that does not answer.
        """
        retry, furthest = Retry(PATIENT), 0
        offset = self._arrived(upload)
        while True:
            self._tell(upload, offset)
            try:
                answer = self._part(upload, offset, part_bytes)
            except Transient as failure:
                retry.wait(failure)
                offset = self._arrived(upload)
                continue
            failpoint("parts.sent")
            if "upload-offset" not in answer.headers:
                return answer
            if offset == upload.size:
                detail = f"{address_of(upload)} has all of the contribution, and does not acknowledge it"
                retry.wait(Transient(FerretError("server.unexpected", detail)))
            offset = min(upload.size, offset + part_bytes)
            if offset > furthest:
                furthest = offset
                retry.reset()

    def _part(self, upload: Upload, offset: int, part_bytes: int) -> Answer:
        headers = headers_of(upload) | {
            "Ferret-Digest": upload.digest,
            "Upload-Offset": str(offset),
            "Upload-Length": str(upload.size),
        }
        try:
            return self._transport.once("PATCH", address_of(upload), self._spool.read(offset, part_bytes), headers)
        except FerretError as error:
            if error.code in AGAIN:
                raise Transient(error) from error
            raise

    def _arrived(self, upload: Upload) -> int:
        """Returns how many bytes the server has. Raises ``server.unexpected`` if this is more than there are."""
        headers = {"Ferret-Fence": str(upload.fence), "Ferret-Digest": upload.digest}
        answer = self._transport.request("GET", address_of(upload), headers=headers, attempts=PATIENT)
        offset = read_model(UploadProgress, answer.json()).offset
        if offset > upload.size:
            message = f"is more than the contribution has ({upload.size} bytes)"
            raise FerretError.of_field("server.unexpected", "uploadprogress.offset", offset, message)
        return offset

    def _tell(self, upload: Upload, done: int) -> None:
        self.watcher(Progress(Stage.UPLOAD, upload.round, done, upload.size))


def address_of(upload: Upload) -> str:
    """Returns the path of the contribution, for PUT, and for PATCH of its parts."""
    return f"/participant/assignments/{upload.assignment}/contribution"


def headers_of(upload: Upload) -> dict[str, str]:
    """Returns the headers of the contribution's request."""
    return {
        "Content-Type": "application/octet-stream",
        "Idempotency-Key": upload.key,
        "Ferret-Fence": str(upload.fence),
        "Ferret-Seconds": f"{upload.seconds:.3f}",
        "Ferret-Signature": upload.signature,
    }


def _require_own(accepted: ContributionReceipt, upload: Upload) -> None:
    """Raises unless the response matches the upload: freeing the spool for another one would lose the contribution."""
    if accepted.digest != upload.digest:
        message = f"is not {upload.digest}, which was sent; the contribution is kept"
        raise FerretError.of_field("server.unexpected", "digest", accepted.digest, message)
