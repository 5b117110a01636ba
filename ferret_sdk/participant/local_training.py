"""A participant's training: the model of the round, local steps, and the stored contribution."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from ferret_core.client.state import ClientState
from ferret_core.contribution import SealedContribution, committed_layout
from ferret_core.privacy.commitment import committed_size
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import Lease
from ferret_core.system.failpoints import failpoint
from ferret_sdk.http.retry import AWAY
from ferret_sdk.http.transport import Transport
from ferret_sdk.participant.exposure import Exposure
from ferret_sdk.participant.replica_sync import ReplicaSync
from ferret_sdk.participant.secure_sums import MaskedVector, SecureSums
from ferret_sdk.participant.spool import Spool, Upload
from ferret_sdk.participant.terms_enforcement import Enforcement
from ferret_sdk.service.progress import Progress, Stage, Watcher

if TYPE_CHECKING:
    from ferret_core.client.hooks import Site
    from ferret_core.datasets.base import Example
    from ferret_core.datasets.tokenization.client_data import ClientData
    from ferret_core.privacy.mechanism import RecordPrivacy
    from ferret_core.replica.replica import Replica
    from ferret_core.training.custom_training import CustomTraining

log = logging.getLogger(__name__)

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


class LocalTraining:
    """Trains on ``examples`` from the model of ``follower``, with the site's functions ``site`` if given.

    ``ask`` gets consent to what a contribution reveals, or raises. Every contribution is signed with ``key`` and goes
    to ``spool``.
    """

    def __init__(
        self,
        follower: ReplicaSync,
        state: ClientState,
        spool: Spool,
        enforcement: Enforcement,
        examples: list[Example],
        watcher: Watcher,
        ask: Callable[[Exposure], None],
        key: str,
        site: Site | None,
        sums: SecureSums,
    ) -> None:
        self._follower = follower
        self._state = state
        self._spool = spool
        self._enforcement = enforcement
        self._examples = examples
        self._watcher = watcher
        self._ask = ask
        self._key = key
        self._site = site
        self._sums = sums
        self._shard: ClientData | None = None
        self.used_examples = False
        """True from the first use of an example: from then on an error may reveal it."""

    def deal(self, lease: Lease) -> None:
        """Takes part in the round's secure sum, before the training, if the terms and the roster are in order.

        A copy of a model that the server has left, e.g. for a backup, is built once more.
        """
        try:
            self._deal(lease)
        except FerretError as error:
            if error.code != "contribution.wrong_base" and not any(each.field == "origin" for each in error.errors):
                raise
            log.warning("%s; starting over from the base model", error.detail)
            self.start_over()
            self._deal(lease)

    def _deal(self, lease: Lease) -> None:
        with self._follower.at(lease.task) as replica:
            self._enforcement.require_round(lease.task, replica.experiment, replica.shapes, len(self._examples))
            roster = self._sums.roster(lease, replica)
            self._enforcement.require_size(roster.layout.size)
            if replica.spec.privacy.of_records:
                self._enforcement.record_privacy(replica.spec, self._examples, len(roster.members))
            self._ask(Exposure.of(replica.experiment, replica.shapes, len(self._examples)))
            self._sums.deal(lease, roster)

    def make(self, lease: Lease, heartbeat: Heartbeat) -> Upload:
        """Trains, and stores the contribution until it has arrived.

        The terms, the ledger and the base model are checked completely before the first example is used.
        """
        from ferret_core.algorithms.base import Client
        from ferret_core.client.local_round import contribute

        with self._follower.at(lease.task) as replica:
            self._enforcement.require_round(lease.task, replica.experiment, replica.shapes, len(self._examples))
            self._ask(Exposure.of(replica.experiment, replica.shapes, len(self._examples)))
            self._require_kind(lease, replica)
            record = self._record_privacy(lease, replica)
            self._enforcement.spend(replica.spec, record)
            self.used_examples = True
            discretion, on_step = self._enforcement.discretion(), self._stepping(replica, lease, heartbeat)
            with self._enforcement.training(replica.model):
                shard = self._tokenised(replica)
                memory, own = self._state.load(), self._own(replica)
                client = Client(lease.task, shard, memory, on_step, discretion, own, record)
                sealed, kept, cost = contribute(replica, client)
            self._enforcement.require_contribution(sealed, replica.experiment, replica.shapes, discretion)
            heartbeat.check()
            masked = None if lease.sum is None else self._masked(lease, replica, sealed)
            sent = self._committed(lease, replica, sealed) if masked is None else masked.sealed
        failpoint("participant.trained")
        self._state.stage(sent.digest, kept)
        failpoint("participant.kept")
        private, seconds = self._enforcement.budget is not None, discretion.timed(cost.seconds)
        upload = Upload.of(lease, sent, seconds if masked is None else 0.0, self._key, private=private)
        upload = upload._replace(loss=sealed.meta.metrics.get("train_loss"))
        self._spool.keep(upload, sent.pieces)
        failpoint("participant.spooled")
        if masked is not None:
            self._sums.keep(masked)
            failpoint("secure.masked")
        return upload

    def _require_kind(self, lease: Lease, replica: Replica) -> None:
        """Fetches the shares for a secure sum. Raises ``server.unexpected`` if only one of the specification and the
        lease has one."""
        if replica.spec.secure.masked != (lease.sum is not None):
            message = "does not match secure.aggregation of the specification"
            raise FerretError.of_field("server.unexpected", "assignment.sum", lease.sum is not None, message)
        if lease.sum is not None:
            self._sums.accept(lease, lease.sum)

    def _masked(self, lease: Lease, replica: Replica, sealed: SealedContribution) -> MaskedVector:
        from ferret_core.aggregation.group_sum import summation

        assert lease.sum is not None
        sums = summation(replica, self._sums.members(lease.sum.context))
        vector = sums.integers(replica.state, sealed.contribution, replica.shapes)
        return self._sums.mask(lease, replica, vector)

    @staticmethod
    def _committed(lease: Lease, replica: Replica, sealed: SealedContribution) -> SealedContribution:
        """Returns what is sent without masks: integers behind random bytes if the server adds the noise."""
        from ferret_core.aggregation.noised_sum import seal_committed

        return seal_committed(replica, lease.task, sealed) if replica.spec.privacy.central else sealed

    def _record_privacy(self, lease: Lease, replica: Replica) -> RecordPrivacy | None:
        """Returns the protection of this site's records; None if the experiment has none."""
        if not replica.spec.privacy.of_records:
            return None
        if lease.sum is not None:
            members = self._sums.members(lease.sum.context)
        else:
            members = replica.spec.participants.sample_size(lease.task.population)
            layout = committed_layout(replica.experiment, replica.shapes, lease.task)
            self._enforcement.require_size(committed_size(layout))
        return self._enforcement.record_privacy(replica.spec, self._examples, members)

    def _own(self, replica: Replica) -> CustomTraining | None:
        from ferret_core.training.custom_training import CustomTraining

        return CustomTraining(self._site, self._examples, replica.tokenizer) if self._site else None

    def _stepping(self, replica: Replica, lease: Lease, heartbeat: Heartbeat) -> Callable[[int], None]:
        """Returns the callback after each local step."""
        local = replica.experiment.traits.local
        steps = local.steps_for(len(self._examples)) if local else 0

        def stepped(step: int) -> None:
            heartbeat.check()
            self._enforcement.check_step()
            self._watcher(Progress(Stage.TRAIN, lease.task.round, step, steps))

        self._watcher(Progress(Stage.TRAIN, lease.task.round, 0, steps))
        return stepped

    def _tokenised(self, replica: Replica) -> ClientData:
        from ferret_core.datasets.tokenization.tokenize import shard_of

        template = replica.spec.prompt.template
        self._shard = self._shard or shard_of(self._examples, replica.tokenizer, replica.context, template)
        return self._shard

    def start_over(self) -> None:
        """Drops the copy of the model: the next one is built from the base model."""
        self._follower.forget()
