"""A real participant: trains where its data are, and sends only the contribution."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ferret_core.failpoints import failpoint
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import Choice
from ferret_core.protocol.states import ExperimentState
from ferret_sdk import membership
from ferret_sdk.address import ClientSettings, split
from ferret_sdk.download import require_empty
from ferret_sdk.follower import Follower
from ferret_sdk.heartbeat import Heartbeat
from ferret_sdk.membership import Membership
from ferret_sdk.memory import Memory
from ferret_sdk.places import Places
from ferret_sdk.progress import Progress, Stage, Totals, Watcher, log_outages
from ferret_sdk.retry import AWAY, PATIENT, Outage
from ferret_sdk.schemas import Enrolled, Lease, Poll
from ferret_sdk.spool import Spool, Upload
from ferret_sdk.transport import Transport

if TYPE_CHECKING:
    from ferret_core.checkpoint import Manifest
    from ferret_core.datasets._base import Example
    from ferret_core.datasets._shard import Shard
    from ferret_core.replica import Replica

log = logging.getLogger(__name__)

SHORTEST_PAUSE = 0.01
LONGEST_PAUSE = 300.0
"""Between two questions for work, whatever the server asks for, in seconds."""
# The round went on without us: nothing to report, ask for the next assignment.
OVERTAKEN = frozenset({"lease.lost", "round.closed", "contribution.duplicate"})
# The server rebuilds a damaged file: the same assignment comes again when its lease has run out.
DAMAGED = frozenset({"storage.corrupt", "storage.missing"})
MOST_DAMAGED = 5
"""Assignments in a row that end with a damaged file before it is no longer believed that the server rebuilds it."""
# Statuses after which the same upload is never taken.
FINAL = frozenset({404, 409, 410, 413, 422})


class RoundReport(NamedTuple):
    """One round as this participant saw it: what it sent, or ``error`` for why it sent nothing.

    ``size`` is in bytes, ``loss`` is the participant's own mean training loss.
    """

    round: int
    size: int = 0
    seconds: float = 0.0
    loss: float | None = None
    error: FerretError | None = None


class Participant:
    """A participant of one experiment::

        participant = Participant.enrol("https://ferret.example.org", code, "clinic-7")
        participant.run(Path("records.jsonl"))

    It asks for work, follows the global model by the ledger, and runs the same code as a simulated client. The server
    is not trusted: nothing it says leads to a file outside ``home``, and an answer that is not as it must be ends the
    participation with ``server.unexpected``.
    """

    def __init__(self, member: Membership, home: Path, *, insecure_http: bool = False) -> None:
        self.member = member
        self._transport = Transport(
            member.url, member.token, insecure_http=insecure_http or ClientSettings().insecure_http
        )
        places = Places(home, member.experiment, member.participant)
        self._memory = Memory(places.memory, member.name)
        self._spool = Spool(places.upload)
        self._follower = Follower(self._transport, member.experiment, places.base, self._memory.follow)
        self._watcher: Watcher = log_outages
        self._rounds, self._seconds = 0, 0.0
        self._damaged = 0
        self._examples: list[Example] = []
        self._shard: Shard | None = None

    @classmethod
    def enrol(
        cls, url: str, code: str, name: str, home: Path | None = None, *, insecure_http: bool = False
    ) -> Participant:
        """Turns a one-time code into a token, kept under ``home`` (``FERRET_HOME``) for its owner only.

        A code that was turned into a token here before gives that participant again. Raises ``enrolment.invalid``,
        and ``request.invalid`` for plain http to another machine without ``insecure_http``.
        """
        settings = ClientSettings()
        home = (home or settings.home).expanduser()
        insecure_http = insecure_http or settings.insecure_http
        base = split(url).url
        transport = Transport(base, insecure_http=insecure_http)
        member = membership.find(home, base, code)
        if member is None:
            answer = transport.post("/participants", {"code": code, "name": name}).json()
            member = Membership.of(base, Enrolled.read(answer), code)
            membership.save(home, member)
        return cls(member, home, insecure_http=insecure_http)

    def run(
        self,
        examples: Path,
        on_round: Callable[[RoundReport], None] | None = None,
        on_progress: Watcher = log_outages,
        *,
        give_up_after: float | None = None,
    ) -> ExperimentState:
        """Takes part until the experiment is finished and returns how it ended; a paused one is waited for.

        ``examples`` is a JSONL file of instruction, input and output; it is read here and never sent. A contribution
        that was made before a crash, here or at the server, is sent and not made again. ``on_progress`` is told of
        every step in between, from this thread. A server that is away is waited for; after ``give_up_after`` seconds
        without an answer, if given, that raises ``server.unreachable``. Raises ``dataset.invalid`` before anything is
        asked of the server.
        """
        self._examples = read_examples(examples)
        self._watcher = self._follower.watcher = on_progress
        while not (poll := self._poll(give_up_after)).experiment_state.finished:
            report = self._work(poll.assignment)
            if report is None:
                self._wait(poll)
            elif on_round is not None:
                on_round(report)
        self._spool.clear()
        return poll.experiment_state

    @property
    def totals(self) -> Totals:
        """What taking part has come to so far."""
        traffic = self._transport.traffic
        return Totals(self._rounds, traffic.up, traffic.down, self._seconds)

    def keep_model(self, folder: Path) -> Manifest:
        """Writes the tuned model as a checkpoint into the new or empty ``folder``, which appears when it is complete.

        It is rebuilt from the base model and the ledger, every record and the digest at the end checked: the server's
        own checkpoint is not needed. Raises ``ledger.broken``, and ``request.invalid`` for a folder that is in use.
        """
        from ferret_core.checkpoint import write_folder

        require_empty(folder, "folder")
        with self._follower.at_the_end() as replica:
            return write_folder(replica, self.member.experiment, folder)

    def _poll(self, give_up_after: float | None) -> Poll:
        """Asks for work, for as long as an outage may take."""
        outage: Outage | None = None
        while True:
            try:
                poll = Poll.read(self._transport.get("/participant/assignment"))
                self._require_own(poll.assignment)
                return poll
            except FerretError as error:
                if error.code not in AWAY:
                    raise
                outage = outage or Outage(give_up_after)
                self._watcher(Progress(Stage.OUTAGE, done=outage.seconds))
                outage.wait(error)

    def _wait(self, poll: Poll) -> None:
        """Until the server wants to be asked again."""
        if (waiting := poll.waiting) is not None:
            self._watcher(Progress(Stage.WAIT, waiting.round, waiting.done, waiting.total, waiting.awaited))
        time.sleep(min(max(poll.retry_after_seconds, SHORTEST_PAUSE), LONGEST_PAUSE))

    def _require_own(self, lease: Lease | None) -> None:
        """Refuses work of another experiment or participant: ``server.unexpected``."""
        if lease is None:
            return
        asked = {"task.experiment": lease.task.experiment, "task.participant": lease.task.participant}
        own = {"task.experiment": self.member.experiment, "task.participant": self.member.name}
        for field, value in asked.items():
            if value != own[field]:
                raise FerretError.of_field("server.unexpected", field, value, f"this participant has {own[field]!r}")

    def _work(self, lease: Lease | None) -> RoundReport | None:
        """Does what there is to do now; None if that is to wait."""
        waiting = self._spool.waiting()
        if lease is None:
            return None if waiting is None or waiting.fence is None else self._deliver(waiting)
        if waiting is not None and waiting.assignment == lease.id:
            return self._take_part(lease, waiting._replace(fence=lease.fence))
        self._spool.clear()
        return self._take_part(lease, None)

    def _deliver(self, waiting: Upload) -> RoundReport | None:
        """Sends what an earlier attempt left, whose lease may still be ours; None if it has to wait."""
        try:
            return self._send(waiting)
        except FerretError as error:
            log.warning("the contribution to round %d was not taken: %s", waiting.round, error.detail)
            return None

    def _take_part(self, lease: Lease, made: Upload | None) -> RoundReport:
        """Contributes under the lease: what was ``made`` under an earlier lease, or a new contribution."""
        try:
            with Heartbeat(self._transport, lease) as heartbeat:
                return self._contribute(lease, made, heartbeat)
        except FerretError as error:
            if error.code not in OVERTAKEN | AWAY | DAMAGED:
                self._report(lease, error)
            self._damaged = self._damaged + 1 if error.code in DAMAGED else 0
            if error.code == "server.unexpected" or self._damaged == MOST_DAMAGED:
                raise
            return RoundReport(lease.task.round, error=error)
        except Exception as error:
            self._report(lease, FerretError("internal", f"{type(error).__name__}: {error}"))
            raise

    def _contribute(self, lease: Lease, made: Upload | None, heartbeat: Heartbeat) -> RoundReport:
        try:
            return self._send(made or self._make(lease, heartbeat))
        except FerretError as error:
            if error.code != "contribution.wrong_base":
                raise
            log.warning("%s; starting over from the base model", error.detail)
        self._follower.forget()
        return self._send(self._make(lease, heartbeat))

    def _make(self, lease: Lease, heartbeat: Heartbeat) -> Upload:
        """Trains, and keeps the contribution until it has arrived."""
        from ferret_core.algorithms._base import Client
        from ferret_core.participant import contribute

        with self._follower.at(lease.task) as replica:
            shard = self._tokenised(replica)
            client = Client(lease.task, shard, self._memory.recall(), self._stepping(replica, lease, heartbeat))
            sealed, kept, cost = contribute(replica, client)
            heartbeat.check()
        failpoint("participant.trained")
        self._memory.keep(sealed.digest, kept)
        failpoint("participant.kept")
        upload = Upload.of(lease, sealed, cost.seconds)
        self._spool.keep(upload)
        failpoint("participant.spooled")
        return upload

    def _stepping(self, replica: Replica, lease: Lease, heartbeat: Heartbeat) -> Callable[[int], None]:
        """What is to be done after each local step."""
        from ferret_core import catalog

        local = getattr(catalog.algorithm_config(replica.spec.algorithm), "local", None)
        steps: int = local.steps_for(len(self._examples)) if local else 0

        def stepped(step: int) -> None:
            heartbeat.check()
            self._watcher(Progress(Stage.TRAIN, lease.task.round, step, steps))

        self._watcher(Progress(Stage.TRAIN, lease.task.round, 0, steps))
        return stepped

    def _tokenised(self, replica: Replica) -> Shard:
        from ferret_core.datasets._encoding import shard_of

        template = replica.spec.prompt.template
        self._shard = self._shard or shard_of(self._examples, replica.tokenizer, replica.context, template)
        return self._shard

    def _send(self, upload: Upload) -> RoundReport:
        """Uploads the contribution; it stays in the spool while the server may still take it."""
        headers = {
            "Content-Type": "application/octet-stream",
            "Idempotency-Key": upload.key,
            "Ferret-Fence": str(upload.fence),
            "Ferret-Seconds": f"{upload.seconds:.3f}",
        }
        path = f"/participant/assignments/{upload.assignment}/contribution"
        self._watcher(Progress(Stage.UPLOAD, upload.round, 0, len(upload.blob)))
        try:
            self._transport.request("PUT", path, content=upload.blob, headers=headers, attempts=PATIENT)
        except FerretError as error:
            if error.code == "lease.lost":
                self._spool.keep(upload._replace(fence=None))
            elif error.problem.status in FINAL:
                self._spool.clear()
            raise
        failpoint("participant.sent")
        self._spool.clear()
        self._rounds += 1
        self._seconds += upload.seconds
        return RoundReport(upload.round, len(upload.blob), upload.seconds, upload.loss)

    def _report(self, lease: Lease, error: FerretError) -> None:
        """Gives the assignment up, unless its contribution is made and only has to be sent again."""
        if self._spool.waiting() is not None:
            return
        body = {"fence": lease.fence, "code": error.code, "detail": error.detail[:2000]}
        try:
            self._transport.post(f"/participant/assignments/{lease.id}/failure", body, repeatable=True)
        except FerretError as refused:
            log.warning("the failure of round %d could not be reported: %s", lease.task.round, refused.detail)


def read_examples(path: Path) -> list[Example]:
    """The participant's own examples; ``dataset.invalid`` names the file, the line and the field."""
    from ferret_core import catalog

    everything = Choice.model_validate({"name": "jsonl", "train": str(path), "test_share": 0})
    try:
        return catalog.dataset(everything).train()
    except FerretError as error:
        # There is no specification here in which ``dataset.train`` could be looked up.
        told = [field.model_copy(update={"field": "data"}) for field in error.errors]
        raise FerretError.of_fields(error.code, told) if told else error from error
