"""Taking contributions: opened and checked against their assignments, stored, and then accepted in one transaction.

What cannot be taken is noted with its reason, and moves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ferret_api.access import Identity, identity, require_approved
from ferret_api.batching import attempt
from ferret_api.context import Context
from ferret_api.participants import contribution_requirements as terms
from ferret_api.participants.contribution_requirements import Terms
from ferret_core.contribution import Sealed, unseal
from ferret_core.ledger.record import Signature
from ferret_core.protocol.buffers import mapped
from ferret_core.protocol.digest import digest_bytes, digest_stream
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import ContributionReceipt
from ferret_core.protocol.signatures import Signed, require_valid
from ferret_core.protocol.spec import RoundTask
from ferret_core.rounds.cost import LocalCost
from ferret_core.storage import FileKind
from ferret_core.system.failpoints import failpoint
from ferret_db import tables
from ferret_db.engine import assignments as leases
from ferret_db.engine.acceptance import Offer, Target, accept_all, targets
from ferret_db.repositories import assignments, participants


class Arrival(NamedTuple):
    """An upload whose headers have come."""

    token: str
    assignment_id: str


class Expected(NamedTuple):
    """Whose upload it is, and all that decides whether it can be accepted, as that stood before the body was read.

    A participant with a ``public_key`` has to sign.
    """

    participant: Identity
    public_key: str | None
    target: Target
    terms: Terms

    @property
    def assignment(self) -> tables.Assignment:
        return self.target.assignment


class Delivery(NamedTuple):
    """A contribution as it arrived, in memory or in a scratch file of the storage; ``seconds`` are those of the local
    update, ``key`` its idempotency key, ``signature`` what its participant signed it with, and ``digest`` what the
    parts must give that it came in."""

    expected: Expected
    body: bytes | Path
    fence: int
    seconds: float
    key: str | None
    signature: str | None
    digest: str | None = None


class Taken(NamedTuple):
    """What is answered, and whether the same contribution was accepted before."""

    answer: ContributionReceipt
    repeated: bool


def expect_all(context: Context, arrivals: Sequence[Arrival]) -> list[Expected | FerretError]:
    """What is known of these uploads; another participant's assignment is as unknown as none."""
    with context.database.read() as s:
        senders = participants.by_tokens(s, [arrival.token for arrival in arrivals])
        found = targets(s, [arrival.assignment_id for arrival in arrivals])
        agreed = {id_: terms.of(target.experiment) for id_, target in found.items()}

    def expected(arrival: Arrival) -> Expected:
        sender, target = senders.get(arrival.token), found.get(arrival.assignment_id)
        participant = require_approved(identity(context, arrival.token, sender))
        if target is None or target.assignment.participant_id != participant.id:
            raise assignments.unknown(arrival.assignment_id)
        return Expected(participant, sender.public_key if sender else None, target, agreed[arrival.assignment_id])

    return [attempt(expected, arrival) for arrival in arrivals]


def admit(context: Context, expected: Expected, fence: int) -> int:
    """The most bytes that the contribution can have, before the first is read.

    Raises ``round.closed``, ``lease.lost`` and ``request.too_large`` for what would not be accepted. Where one has been
    accepted, only the same again is of use.
    """
    recorded = expected.target.recorded
    if recorded is not None:
        return recorded.size
    expected.target.check_held(fence)
    size, limit = expected.terms.size, context.settings.max_upload_bytes
    if size.arrays > limit:
        detail = f"a contribution to this experiment has {size.arrays} bytes, this service takes at most {limit}: ask"
        raise FerretError("request.too_large", f"{detail} its operator to raise FERRET_MAX_UPLOAD_BYTES")
    return size.total


def repeated(expected: Expected, digest: str) -> ContributionReceipt | None:
    """What is answered where the contribution with this digest was accepted before; ``contribution.duplicate`` where
    another one was."""
    expected.target.check_first(digest)
    recorded = expected.target.recorded
    return None if recorded is None else _acknowledged(recorded)


def take_all(context: Context, deliveries: Sequence[Delivery]) -> list[Taken | FerretError]:
    """What becomes of each of the deliveries.

    A blob that cannot be used is never stored, and its reason is the answer; the third rejects the assignment with it.
    """
    opened = {place: attempt(_opened, delivery) for place, delivery in enumerate(deliveries)}
    offers = {place: found for place, found in opened.items() if isinstance(found, Offer)}
    taken = _taken(context, deliveries, offers)
    answers = [taken[place] if isinstance(found, Offer) else found for place, found in opened.items()]
    for place, (delivery, answer) in enumerate(zip(deliveries, answers, strict=True)):
        if isinstance(answer, FerretError):
            if place not in offers:
                answers[place] = answer = _spoilt(context, delivery, answer)
            refuse(context, delivery.expected.assignment.id, answer)
    return answers


def refuse(context: Context, assignment_id: str, error: FerretError) -> None:
    """Notes that an upload was refused, and why; not where the service itself failed and may take it the next time."""
    if error.problem.status < 500:
        with context.database.begin() as s:
            leases.refuse(s, assignment_id, error)


def _opened(delivery: Delivery) -> Offer | Taken:
    """What the delivery offers, or that it has been taken before."""
    target, digest = delivery.expected.target, _digest(delivery.body)
    if target.recorded is not None and target.recorded.digest == digest:
        return Taken(_acknowledged(target.recorded), repeated=True)
    _require_digest(digest, delivery.digest)
    sealed = _unsealed(delivery.body, digest, delivery.expected)
    cost = LocalCost.reported(delivery.seconds, sealed.meta.metrics)
    return Offer(target.assignment.id, delivery.fence, sealed, cost, idempotency_key=delivery.key)


def _taken(
    context: Context, deliveries: Sequence[Delivery], offers: Mapping[int, Offer]
) -> dict[int, Taken | FerretError]:
    """What becomes of the offers, each under the place of its delivery."""
    stored = _stored(context, deliveries, offers)
    failpoint("upload.stored")
    good = {place: offer for place, offer in stored.items() if isinstance(offer, Offer)}
    bad = {place: error for place, error in stored.items() if isinstance(error, FerretError)}
    return {**bad, **_accepted(context, good)} if good else {**bad}


def _accepted(context: Context, offers: Mapping[int, Offer]) -> dict[int, Taken | FerretError]:
    with context.database.begin() as s:
        rows = accept_all(s, list(offers.values()))
    failpoint("upload.accepted")
    taken = [row if isinstance(row, FerretError) else Taken(_acknowledged(row), repeated=False) for row in rows]
    return dict(zip(offers, taken, strict=True))


def _stored(
    context: Context, deliveries: Sequence[Delivery], offers: Mapping[int, Offer]
) -> dict[int, Offer | FerretError]:
    """The offers with their signatures, once their bytes are on disk; it takes many in the time that it takes one."""

    def store(place: int) -> Offer | FerretError:
        return attempt(partial(_store, context, deliveries[place]), offers[place])

    return dict(zip(offers, context.writers.map(store, offers), strict=True))


def _store(context: Context, delivery: Delivery, offer: Offer) -> Offer:
    delivery.expected.target.check(offer)  # what comes in vain is not even stored
    signed = offer._replace(signature=_signature(delivery, offer.sealed))
    if isinstance(delivery.body, bytes):
        context.storage.put_bytes(delivery.body, FileKind.CONTRIBUTION, offer.sealed.digest)
    else:
        context.storage.put_file(delivery.body, FileKind.CONTRIBUTION, offer.sealed.digest)
    return signed


def _spoilt(context: Context, delivery: Delivery, error: FerretError) -> FerretError:
    """What the participant is told about a blob that cannot be used: its ``error``, unless it could not be accepted
    anyway."""
    try:
        with context.database.begin() as s:
            leases.spoilt(s, delivery.expected.assignment.id, delivery.fence, error)
    except FerretError as other:
        return other
    return error


def _digest(body: bytes | Path) -> str:
    if isinstance(body, bytes):
        return digest_bytes(body)
    with body.open("rb") as file:
        return digest_stream(file)


def _require_digest(found: str, announced: str | None) -> None:
    if announced not in {None, found}:
        message = f"the parts give {found}; send them again from the first"
        raise FerretError.of_field("upload.corrupt", "Ferret-Digest", announced, message)


def _unsealed(body: bytes | Path, digest: str, expected: Expected) -> Sealed:
    (spec, shapes, _), task = expected.terms, RoundTask.model_validate(expected.assignment.task)
    if isinstance(body, bytes):
        return unseal(body, spec, task, shapes, digest)
    with body.open("rb") as file:
        return unseal(mapped(file), spec, task, shapes, digest)


def _signature(delivery: Delivery, sealed: Sealed) -> Signature | None:
    """The participant's, verified; None of one that joined without a key. Raises ``signature.invalid``."""
    key, assignment, meta = delivery.expected.public_key, delivery.expected.assignment, sealed.meta
    if key is None:
        return None
    signed = Signed(meta.experiment, meta.round, meta.participant, meta.base_digest, assignment.id, sealed.digest)
    return Signature(assignment.participant, key, assignment.id, require_valid(key, delivery.signature, signed))


def _acknowledged(row: tables.Contribution) -> ContributionReceipt:
    return ContributionReceipt(digest=row.digest, size=row.size, round=row.round, accepted=True)
