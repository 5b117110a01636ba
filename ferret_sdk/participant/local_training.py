"""A participant's training: the model of the round, local steps, and the stored contribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ferret_core.client.state import ClientState
from ferret_core.protocol.resources.participants import Lease
from ferret_core.system.failpoints import failpoint
from ferret_sdk.participant.exposure import Exposure
from ferret_sdk.participant.replica_sync import ReplicaSync
from ferret_sdk.participant.spool import Spool, Upload
from ferret_sdk.participant.terms_enforcement import Enforcement
from ferret_sdk.service.progress import Progress, Stage, Watcher

if TYPE_CHECKING:
    from ferret_core.client.hooks import Site
    from ferret_core.datasets.base import Example
    from ferret_core.datasets.tokenization.client_data import ClientData
    from ferret_core.replica.replica import Replica
    from ferret_core.training.custom_training import CustomTraining
import threading
from typing import Self

from ferret_core.protocol.errors import FerretError
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
        site: Site | None = None,
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
        self._shard: ClientData | None = None
        self.used_examples = False
        """True from the first use of an example: from then on an error may reveal it."""

    def make(self, lease: Lease, heartbeat: Heartbeat) -> Upload:
        """Trains, and stores the contribution until it has arrived.

        The terms, the ledger and the base model are checked completely before the first example is used.
        """
        from ferret_core.algorithms.base import Client
        from ferret_core.client.local_round import contribute

        with self._follower.at(lease.task) as replica:
            self._enforcement.require_round(lease.task, replica.experiment, replica.shapes, len(self._examples))
            self._ask(Exposure.of(replica.experiment, replica.shapes, len(self._examples)))
            self._enforcement.spend()
            self.used_examples = True
            discretion, on_step = self._enforcement.discretion(), self._stepping(replica, lease, heartbeat)
            with self._enforcement.training(replica.model):
                shard = self._tokenised(replica)
                client = Client(lease.task, shard, self._state.load(), on_step, discretion, self._own(replica))
                sealed, kept, cost = contribute(replica, client)
            self._enforcement.require_contribution(sealed, replica.experiment, replica.shapes, discretion)
            heartbeat.check()
        failpoint("participant.trained")
        self._state.stage(sealed.digest, kept)
        failpoint("participant.kept")
        private = self._enforcement.budget is not None
        upload = Upload.of(lease, sealed, discretion.timed(cost.seconds), self._key, private=private)
        self._spool.keep(upload, sealed.pieces)
        failpoint("participant.spooled")
        return upload

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
