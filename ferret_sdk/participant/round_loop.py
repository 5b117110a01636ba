"""One round of a participant, from the lease on its assignment to the server's response."""

from __future__ import annotations

import logging
from time import sleep

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import Lease, SumStep
from ferret_core.protocol.states import SumStage
from ferret_sdk.http.retry import AWAY
from ferret_sdk.http.transport import Transport
from ferret_sdk.participant.egress_log import carrying
from ferret_sdk.participant.local_training import Heartbeat, LocalTraining
from ferret_sdk.participant.secure_sums import SecureSums
from ferret_sdk.participant.spool import Spool, Upload
from ferret_sdk.participant.terms_enforcement import Enforcement
from ferret_sdk.participant.uploader import Uploader
from ferret_sdk.service.progress import RoundReport

log = logging.getLogger(__name__)

# The round continued without us: there is nothing to report, and the next poll follows.
OVERTAKEN = frozenset({"lease.lost", "round.closed", "contribution.duplicate"})
# The server rebuilds a damaged file: the same assignment comes again when its lease has expired.
DAMAGED = frozenset({"storage.corrupt", "storage.missing"})
# Errors that hold for every later round.
FINAL = frozenset(
    {
        "participant.revoked",
        "server.unexpected",
        "model.invalid",
        "terms.refused",
        "terms.limit_reached",
        "training.unsupported",
        "consent.missing",
        "privacy.too_few_records",
        "privacy.unit_missing",
        "privacy.spent",
    }
)
ENDING = "participant.failed"
"""Reported under a privacy budget: a failed round may reveal an example, so no further round begins."""
REFUSED_PAUSE = 5.0
"""Seconds until the next poll while the server still waits for a message that this site refuses to send."""
MOST_DAMAGED = 5
"""Maximum consecutive assignments with a damaged file, before the server is assumed not to rebuild it."""


class RoundLoop:
    """Trains and sends under the server's leases. A contribution made before a crash is sent first."""

    def __init__(
        self,
        transport: Transport,
        spool: Spool,
        sending: Uploader,
        training: LocalTraining,
        enforcement: Enforcement,
        sums: SecureSums,
    ) -> None:
        self._transport = transport
        self._spool = spool
        self._sending = sending
        self._training = training
        self._enforcement = enforcement
        self._sums = sums
        self._damaged = 0

    def work(self, lease: Lease | None) -> RoundReport | None:
        """Does the current work. Returns None if it has to wait."""
        waiting = self._spool.waiting()
        if waiting is not None and not self._sums.may_send(waiting):
            self._spool.clear()  # masked, but the state does not say so: a kill came between
            waiting = None
        if lease is None:
            return None if waiting is None or waiting.fence is None else self._deliver(waiting)
        if waiting is not None and waiting.assignment == lease.id:
            return self._take_part(lease, waiting._replace(fence=lease.fence))
        self._spool.clear()
        return self._take_part(lease, None)

    def sum_up(self, step: SumStep) -> RoundReport | None:
        """Sends the next message of a secure sum. Returns the refusal, if this site refuses it, and else None."""
        try:
            taken = self._sums.take(step)
        except FerretError as error:
            if not error.code.startswith("secure."):
                raise
            log.warning("round %d: %s", step.round, error.detail)
            return RoundReport(step.round, error=error)
        if not taken:
            sleep(REFUSED_PAUSE)
        return None

    def _deliver(self, waiting: Upload) -> RoundReport | None:
        """Sends an earlier attempt's contribution if its lease may still be ours. Returns None if it has to wait."""
        try:
            return self._send(waiting)
        except FerretError as error:
            log.warning("the contribution to round %d was not taken: %s", waiting.round, error.detail)
            return None

    def _take_part(self, lease: Lease, made: Upload | None) -> RoundReport | None:
        """Contributes under the lease: the one ``made`` under an earlier lease, or a new one."""
        self._training.used_examples = False
        try:
            with Heartbeat(self._transport, lease) as heartbeat:
                return self._contribute(lease, made, heartbeat)
        except FerretError as error:
            reported = None
            if error.code not in OVERTAKEN | AWAY | DAMAGED and error.code != "participant.revoked":
                reported = self._report(lease, error)
            self._damaged = self._damaged + 1 if error.code in DAMAGED else 0
            if error.code in FINAL or self._damaged == MOST_DAMAGED:
                raise
            if reported == ENDING:
                raise FerretError(ENDING, f"{error.problem.title}: {error.detail}") from error
            return RoundReport(lease.task.round, error=error)
        except Exception as error:
            if self._report(lease, error) == ENDING:
                raise FerretError(ENDING, f"{type(error).__name__}: {error}") from error
            raise

    def _contribute(self, lease: Lease, made: Upload | None, heartbeat: Heartbeat) -> RoundReport | None:
        if lease.sum is not None and lease.sum.stage == SumStage.DEAL:
            self._training.deal(lease)
            return None
        try:
            return self._send(made or self._training.make(lease, heartbeat))
        except FerretError as error:
            if error.code != "contribution.wrong_base":
                raise
            log.warning("%s; starting over from the base model", error.detail)
        self._training.start_over()
        return self._send(self._training.make(lease, heartbeat))

    def _send(self, upload: Upload) -> RoundReport:
        """Sends the contribution if the site's terms allow it. Deletes it if they refuse it permanently."""
        try:
            self._enforcement.require_sending(upload.size, private=upload.private, counted=upload.counted)
        except FerretError as error:
            if error.code in FINAL - {"terms.limit_reached"} | {"terms.round_not_allowed"}:
                self._spool.clear()
            raise
        if not upload.counted:
            upload = upload._replace(counted=True)
            self._spool.note(upload)
        with carrying(upload.round, upload.digest):
            return self._sending.send(upload)

    def _report(self, lease: Lease, error: Exception) -> str | None:
        """Gives the assignment up, unless its contribution exists and must only be sent again.

        Returns the code that the server received, if any.
        """
        failure = self._enforcement.reported(error, used_examples=self._training.used_examples)
        if failure is None or self._spool.waiting() is not None:
            return None
        body = {"fence": lease.fence, "code": failure.code, "detail": failure.detail[:2000]}
        try:
            self._transport.post(f"/participant/assignments/{lease.id}/failure", body, repeatable=True)
        except FerretError as refused:
            log.warning("the failure of round %d could not be reported: %s", lease.task.round, refused.detail)
        return failure.code
