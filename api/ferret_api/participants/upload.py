"""Uploads of contributions: lookup before the body arrives, validation, storing, and recording.

received   an upload's body is opened and checked against its assignment
stored     its bytes are on disk
accepted   it is recorded, together with others, in one transaction

An invalid upload has its error as its result. The reason is recorded, and the assignment's state does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ferret_api.access import Identity, identity, require_approved
from ferret_api.batching import attempt
from ferret_api.context import Context
from ferret_api.participants import contribution_requirements
from ferret_api.participants.contribution_requirements import ContributionRequirements
from ferret_core.algorithms.configs.base import ContributionSize
from ferret_core.contribution import SealedContribution, committed_layout, open_contribution, seal_vector
from ferret_core.ledger.record import Signature
from ferret_core.privacy.commitment import committed_size, committed_vector
from ferret_core.protocol.buffers import mapped
from ferret_core.protocol.digest import digest_bytes, digest_stream
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import ContributionReceipt
from ferret_core.protocol.signatures import Signed, require_valid
from ferret_core.protocol.spec import RoundTask
from ferret_core.rounds.cost import LocalCost
from ferret_core.secure.packing import Layout
from ferret_core.secure.roster import Roster
from ferret_core.storage import FileKind
from ferret_core.system.failpoints import failpoint
from ferret_db import tables
from ferret_db.engine import assignments as leases
from ferret_db.engine.acceptance import ContributionOffer, ContributionTarget, accept_all, find_targets
from ferret_db.engine.round_span import trace_of
from ferret_db.repositories import assignments, participants, secure_sums
from ferret_runtime import tracing
from ferret_runtime.tracing import Note


class ExpectedUpload(NamedTuple):
    """An upload's assignment, with all that decides on acceptance. With a ``public_key`` the participant must sign.

    In a secure sum the upload is a masked vector of the ``roster``'s group.
    """

    participant: Identity
    public_key: str | None
    target: ContributionTarget
    requirements: ContributionRequirements
    roster: Roster | None = None

    @property
    def assignment(self) -> tables.Assignment:
        return self.target.assignment


class ReceivedUpload(NamedTuple):
    """An upload with its ``body``, in memory or in a scratch file of the storage.

    ``seconds`` is the duration of the local update, ``key`` the idempotency key, ``signature`` the participant's
    signature. ``digest`` is the expected digest of an upload in parts.
    """

    expected: ExpectedUpload
    body: bytes | Path
    fence: int
    seconds: float
    key: str | None
    signature: str | None
    digest: str | None = None


class UploadResult(NamedTuple):
    """The response to an accepted upload; ``repeated`` if the same contribution was accepted before."""

    answer: ContributionReceipt
    repeated: bool

    @classmethod
    def of(cls, row: tables.Contribution, *, repeated: bool) -> UploadResult:
        return cls(ContributionReceipt(digest=row.digest, size=row.size, round=row.round, accepted=True), repeated)


Outcome = ContributionOffer | UploadResult | FerretError
"""An opened upload: an offer, or its final result."""


def lookup_uploads(context: Context, headers: Sequence[tuple[str, str]]) -> list[ExpectedUpload | FerretError]:
    """Looks up the uploads' assignments by token and id; a foreign assignment gives `assignment.not_found`."""
    with context.database.read() as s:
        senders = participants.by_tokens(s, [token for token, _ in headers])
        targets = find_targets(s, [assignment_id for _, assignment_id in headers])
        requirements = {id_: contribution_requirements.of(target.experiment) for id_, target in targets.items()}
        masked = {target.round.id for target in targets.values() if target.round.stage is not None}
        rosters = secure_sums.rosters(s, masked) if masked else {}

    def expected(header: tuple[str, str]) -> ExpectedUpload:
        token, assignment_id = header
        sender, target = senders.get(token), targets.get(assignment_id)
        participant = require_approved(identity(context, token, sender))
        if target is None or target.assignment.participant_id != participant.id:
            raise assignments.unknown(assignment_id)
        key, groups = sender.public_key if sender else None, rosters.get(target.round.id)
        roster = secure_sums.roster_with(groups, target.assignment.participant) if groups else None
        return ExpectedUpload(participant, key, target, requirements[assignment_id], roster)

    return [attempt(expected, header) for header in headers]


def upload_size_limit(context: Context, expected: ExpectedUpload, fence: int) -> int:
    """Returns the maximum size of the contribution in bytes, before its body is read.

    Raises ``round.closed``, ``lease.lost`` and ``request.too_large`` for an upload that would not be accepted. After an
    accepted contribution, only a repetition of the same one is allowed.
    """
    recorded = expected.target.recorded
    if recorded is not None:
        return recorded.size
    expected.target.check_held(fence)
    size = expected.requirements.size
    if expected.roster is not None:
        size = ContributionSize(0, expected.roster.layout.size)
    elif expected.requirements.experiment.spec.privacy.central:
        size = ContributionSize(0, committed_size(_layout(expected)))
    require_acceptable(context, size.arrays)
    return size.total


def require_acceptable(context: Context, size: int) -> None:
    """Raises ``request.too_large`` for contributions of more bytes than the service takes."""
    limit = context.settings.max_upload_bytes
    if size > limit:
        detail = f"a contribution to this experiment has {size} bytes, this service takes at most {limit}: ask"
        raise FerretError("request.too_large", f"{detail} its operator to raise FERRET_MAX_UPLOAD_BYTES")


def already_accepted(expected: ExpectedUpload, digest: str) -> UploadResult | None:
    """Returns the result of this digest's earlier acceptance, if any; raises ``contribution.duplicate`` for another."""
    expected.target.check_first(digest)
    recorded = expected.target.recorded
    return None if recorded is None else UploadResult.of(recorded, repeated=True)


def accept_uploads(context: Context, uploads: Sequence[ReceivedUpload]) -> list[UploadResult | FerretError]:
    """Returns the result of each upload.

    An invalid body is never stored, and its error is the result; the third invalid body also rejects the assignment.
    """
    opened = [attempt(_open, upload) for upload in uploads]
    # Storing many takes as long as storing one.
    stored = list(context.writers.map(partial(_store, context), uploads, opened))
    failpoint("upload.stored")
    results = _record(context, stored)
    for place, (upload, result) in enumerate(zip(uploads, results, strict=True)):
        if isinstance(result, FerretError):
            if isinstance(opened[place], FerretError):
                results[place] = result = _bad_upload(context, upload, result)
            record_rejection(context, upload.expected.assignment.id, result)
    return results


def record_rejection(context: Context, assignment_id: str, error: FerretError) -> None:
    """Records a rejected upload and why, except for the service's own failures, after which a retry may succeed."""
    if error.problem.status < 500:
        with context.database.begin() as s:
            leases.refuse(s, assignment_id, error)


def _bad_upload(context: Context, upload: ReceivedUpload, error: FerretError) -> FerretError:
    """Returns the result of an upload with an invalid body: its ``error``, unless it could not be accepted anyway."""
    try:
        with context.database.begin() as s:
            leases.record_bad_upload(s, upload.expected.assignment.id, upload.fence, error)
    except FerretError as other:
        return other
    return error


def _open(upload: ReceivedUpload) -> ContributionOffer | UploadResult:
    """Returns the upload's offer, or the result if it was accepted before."""
    target, digest = upload.expected.target, _digest(upload.body)
    if target.recorded is not None and target.recorded.digest == digest:
        return UploadResult.of(target.recorded, repeated=True)
    if upload.digest not in {None, digest}:
        message = f"the parts give {digest}; send them again from the first"
        raise FerretError.of_field("upload.corrupt", "Ferret-Digest", upload.digest, message)
    sealed = _unsealed(upload, digest)
    cost = LocalCost.reported(upload.seconds, sealed.meta.metrics)
    return ContributionOffer(target.assignment.id, upload.fence, sealed, cost, idempotency_key=upload.key)


def _store(context: Context, upload: ReceivedUpload, opened: Outcome) -> Outcome:
    """Returns the offer with its signature, once its bytes are on disk; other results pass through."""
    if not isinstance(opened, ContributionOffer):
        return opened
    try:
        upload.expected.target.check(opened)  # useless uploads are not stored
        signature = _signature(upload, opened.sealed)
        if isinstance(upload.body, bytes):
            context.storage.put_bytes(upload.body, FileKind.CONTRIBUTION, opened.sealed.digest)
        else:
            context.storage.put_file(upload.body, FileKind.CONTRIBUTION, opened.sealed.digest)
    except FerretError as error:
        return error
    return opened._replace(signature=signature)


def _record(context: Context, stored: Sequence[Outcome]) -> list[UploadResult | FerretError]:
    offers = [each for each in stored if isinstance(each, ContributionOffer)]
    rows: list[tables.Contribution | FerretError] = []
    if offers:
        with context.database.begin() as s:
            rows = accept_all(s, offers)
        failpoint("upload.accepted")
    recorded = iter(rows)

    def result(each: Outcome) -> UploadResult | FerretError:
        outcome = next(recorded) if isinstance(each, ContributionOffer) else each
        return UploadResult.of(outcome, repeated=False) if isinstance(outcome, tables.Contribution) else outcome

    return [result(each) for each in stored]


def _digest(body: bytes | Path) -> str:
    if isinstance(body, bytes):
        return digest_bytes(body)
    with body.open("rb") as file:
        return digest_stream(file)


def _unsealed(upload: ReceivedUpload, digest: str) -> SealedContribution:
    (experiment, shapes, _), task = (
        upload.expected.requirements,
        RoundTask.model_validate(upload.expected.assignment.task),
    )
    blob = _blob(upload.body)
    if (roster := upload.expected.roster) is not None:
        roster.layout.check(blob)
        return seal_vector((blob,), experiment.spec, task, digest)
    if experiment.spec.privacy.central:
        committed_vector(blob, _layout(upload.expected))
        return seal_vector((blob,), experiment.spec, task, digest)
    return open_contribution(blob, experiment, task, shapes, digest)


def _blob(body: bytes | Path) -> bytes | memoryview:
    if isinstance(body, bytes):
        return body
    with body.open("rb") as file:
        return mapped(file)


def _layout(expected: ExpectedUpload) -> Layout:
    """Returns the layout of the integers in a contribution to central noise."""
    experiment, shapes, _ = expected.requirements
    return committed_layout(experiment, shapes, RoundTask.model_validate(expected.assignment.task))


def _signature(upload: ReceivedUpload, sealed: SealedContribution) -> Signature | None:
    """Returns the verified signature, None for a participant without a key; raises ``signature.invalid``."""
    key, assignment, meta = upload.expected.public_key, upload.expected.assignment, sealed.meta
    if key is None:
        return None
    signed = Signed(meta.experiment, meta.round, meta.participant, meta.base_digest, assignment.id, sealed.digest)
    return Signature(assignment.participant, key, assignment.id, require_valid(key, upload.signature, signed))


def receive_span(expected: ExpectedUpload, body: bytes | Path) -> AbstractContextManager[Note]:
    """Returns a span that covers checking, storing and accepting the ``body``."""
    size = len(body) if isinstance(body, bytes) else body.stat().st_size
    name = expected.assignment.participant
    return tracing.span("receive", trace_of(expected.target.round), participant=name, bytes=size)
