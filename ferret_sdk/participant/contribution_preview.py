"""A preview of a contribution, part by part: made as for a round, and shown instead of sent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ferret_core.aggregation.projection_noise import participants_of
from ferret_core.client.state import ClientState
from ferret_core.compatibility import largest_group
from ferret_core.contribution import committed_layout, seal_vector
from ferret_core.privacy.commitment import NONCE_BYTES
from ferret_core.protocol.digest import canonical_json
from ferret_core.protocol.errors import cut
from ferret_core.protocol.resources.base import API_PATH
from ferret_core.protocol.resources.participants import Lease
from ferret_core.protocol.spec import RoundTask
from ferret_core.rounds import sampling
from ferret_core.secure.packing import Layout
from ferret_core.secure.shares import message_bytes
from ferret_sdk.http.transport import Transport
from ferret_sdk.participant.membership import Membership
from ferret_sdk.participant.replica_sync import ReplicaSync
from ferret_sdk.participant.spool import Upload
from ferret_sdk.participant.terms_enforcement import Enforcement
from ferret_sdk.participant.uploader import address_of, headers_of
from ferret_sdk.service.progress import Progress, Stage, Watcher

if TYPE_CHECKING:
    from ferret_core.algorithms.base import Client
    from ferret_core.client.hooks import Site
    from ferret_core.contribution import SealedContribution
    from ferret_core.datasets.base import Example
    from ferret_core.replica.replica import Replica

LONGEST_VALUE = 60
"""Maximum displayed characters of a value."""
ASSIGNMENT = "asg_0000000000000000"
"""Placeholder for the id that the server assigns."""
SECRET = "your token"  # noqa: S105 # nosec B105


class Part(NamedTuple):
    """One part of a request.

    ``place`` is ``header`` for an HTTP header, ``layout``, ``metadata`` or ``array`` for a part of the body. ``type``
    is JSON's, or that of an array's entries, ``size`` is in bytes, ``value`` the beginning of the text, or an array's
    shape.
    """

    place: str
    name: str
    type: str
    size: int
    value: str


class Preview(NamedTuple):
    """An unsent request.

    ``size`` and ``digest`` (BLAKE3) describe its body; ``digest`` is None if masks, noise or a nonce make another body
    each time. ``parts`` begin with the headers; the sizes of the body's parts add up to ``size``. ``norm`` is the
    vector's norm before the privacy budget's clipping, if any; it stays here. ``sum_bytes`` is the size of a secure
    sum's other messages: one-time keys, deal, signature and shares.
    """

    method: str
    path: str
    round: int
    size: int
    digest: str | None
    parts: tuple[Part, ...]
    norm: float | None = None
    sum_bytes: int = 0


class PreviewBuilder:
    """Makes the contribution of ``member`` to the next round, as ``Training`` would, on the model of ``follower``."""

    def __init__(
        self,
        transport: Transport,
        member: Membership,
        follower: ReplicaSync,
        state: ClientState,
        enforcement: Enforcement,
        site: Site | None = None,
    ) -> None:
        self._transport = transport
        self._member = member
        self._follower = follower
        self._state = state
        self._enforcement = enforcement
        self._site = site

    def make(self, examples: list[Example], watcher: Watcher) -> Preview:
        """Trains on ``examples``. Spool, memory, byte count and privacy budget do not change."""
        from ferret_core.aggregation.noised_sum import seal_committed
        from ferret_core.client.local_round import contribute

        with self._follower.at_the_end() as (_, replica):
            task = self._task(replica)
            self._enforcement.require_round(task, replica.experiment, replica.shapes, len(examples))
            with self._enforcement.training(replica.model):
                client = self._client(replica, task, examples, watcher)
                sealed, _, cost = contribute(replica, client)
            self._enforcement.require_contribution(sealed, replica.experiment, replica.shapes, client.discretion)
            sent, body, spec = sealed, _body(sealed), replica.spec
            if spec.secure.masked:
                sent, body = _vector(replica, task, sealed)
            elif spec.privacy.central:
                sent = seal_committed(replica, task, sealed)
                body = _committed_body(committed_layout(replica.experiment, replica.shapes, task))
        seconds = 0.0 if spec.secure.masked else client.discretion.timed(cost.seconds)
        shown = self._shown(sent, body, client, seconds)
        if spec.secure.masked:
            shown = shown._replace(sum_bytes=message_bytes(largest_group(replica.experiment)))
        if spec.secure.masked or spec.privacy.central or self._enforcement.budget is not None:
            shown = shown._replace(digest=None)
        return shown

    def _task(self, replica: Replica) -> RoundTask:
        round_number = min(replica.round + 1, replica.spec.rounds)
        names = [self._member.name]
        return sampling.round_tasks(replica.spec, self._member.experiment, round_number, names, replica.digest)[0]

    def _client(self, replica: Replica, task: RoundTask, examples: list[Example], watcher: Watcher) -> Client:
        from ferret_core.algorithms.base import Client
        from ferret_core.datasets.tokenization.tokenize import shard_of
        from ferret_core.training.custom_training import CustomTraining

        shard = shard_of(examples, replica.tokenizer, replica.context, replica.spec.prompt.template)

        def stepped(step: int) -> None:
            self._enforcement.check_step()
            watcher(Progress(Stage.TRAIN, task.round, step))

        watcher(Progress(Stage.TRAIN, task.round))
        own = CustomTraining(self._site, examples, replica.tokenizer) if self._site else None
        discretion, record = self._enforcement.discretion(), None
        if replica.spec.privacy.of_records:
            record = self._enforcement.record_privacy(replica.spec, examples, participants_of(replica.spec))
        return Client(task, shard, self._state.load(), stepped, discretion, own, record)

    def _shown(self, sealed: SealedContribution, body: list[Part], client: Client, seconds: float) -> Preview:
        lease = Lease(id=ASSIGNMENT, fence=1, lease_seconds=1, lease_until=datetime.now(UTC), task=client.task)
        upload = Upload.of(lease, sealed, seconds, self._member.key)
        path = address_of(upload)
        headers = self._transport.headers_of("PUT", path, upload.size, headers_of(upload))
        parts = (*map(_header, headers.items()), *body)
        norm = getattr(client.discretion.protect, "norm", None)
        return Preview("PUT", f"{API_PATH}{path}", upload.round, upload.size, upload.digest, parts, norm)


def _header(header: tuple[str, str]) -> Part:
    name, value = header
    shown = f"Bearer <{SECRET}>" if name.lower() == "authorization" else value
    return Part("header", name, "text", len(f"{name}: {value}\r\n".encode()), cut(shown, LONGEST_VALUE))


def _body(sealed: SealedContribution) -> list[Part]:
    arrays = [
        Part("array", name, str(array.dtype), array.nbytes, " × ".join(map(str, array.shape)))
        for name, array in sorted(sealed.contribution.arrays.items())
    ]
    metadata = [_metadata(name, value) for name, value in sealed.meta.model_dump(mode="json").items()]
    rest = sealed.size - sum(part.size for part in (*arrays, *metadata))
    return [
        Part("layout", "safetensors", "JSON", rest, "names, types and places of all that follows"),
        *metadata,
        *arrays,
    ]


def _vector(replica: Replica, task: RoundTask, sealed: SealedContribution) -> tuple[SealedContribution, list[Part]]:
    """Returns the vector for a sum of the largest group, without its masks, and the parts of the masked one."""
    from ferret_core.aggregation.group_sum import summation

    members = largest_group(replica.experiment)
    sums = summation(replica, members)
    layout = Layout(sums.segments(replica.shapes), members)
    vector = sums.integers(replica.state, sealed.contribution, replica.shapes)
    parts = [Part("array", "masked", f"uint{ring.bits}", ring.size, str(ring.count)) for ring in layout.rings]
    return seal_vector(layout.pack(vector), replica.spec, task), parts


def _committed_body(layout: Layout) -> list[Part]:
    (ring,) = layout.rings
    return [
        Part("layout", "nonce", "octets", NONCE_BYTES, "random, so that the digest reveals nothing"),
        Part("array", "coordinates", f"uint{ring.bits}", ring.size, str(ring.count)),
    ]


def _metadata(name: str, value: Any) -> Part:
    text = canonical_json(value).decode()
    kinds = {str: "text", dict: "object", list: "list", type(None): "null"}
    return Part("metadata", name, kinds.get(type(value), "number"), len(text.encode()), cut(text, LONGEST_VALUE))
