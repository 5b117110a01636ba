"""Taking a contribution: opened and checked against its assignment, stored, and then accepted in one transaction.

What cannot be taken is noted with its reason, and moves nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_api.context import Context
from ferret_api.participants.schemas import Accepted
from ferret_core import catalog
from ferret_core.cost import LocalCost
from ferret_core.failpoints import failpoint
from ferret_core.ledger import Signature
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.digest import digest_bytes, digest_stream
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.pieces import mapped
from ferret_core.protocol.signatures import Signed, require_valid
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.sealed import Sealed, unseal
from ferret_core.storage import FileKind, Storage
from ferret_db import tables
from ferret_db.engine import assignments as leases
from ferret_db.repositories import contributions, experiments, participants


class Delivery(NamedTuple):
    """A contribution as it arrived, in memory or in a scratch file of the storage; ``seconds`` are those of the local
    update, ``key`` its idempotency key, and ``signature`` what its participant signed it with."""

    body: bytes | Path
    fence: int
    seconds: float
    key: str | None
    signature: str | None


def take(context: Context, assignment: tables.Assignment, delivery: Delivery) -> tuple[Accepted, bool]:
    """What is answered, and whether the same contribution was accepted before.

    A blob that cannot be used is never stored, and its reason is raised; the third rejects the assignment with it.
    """
    try:
        return _take(context, assignment, delivery)
    except FerretError as error:
        refuse(context, assignment.id, error)
        raise


def admit(context: Context, assignment: tables.Assignment, fence: int) -> int:
    """The most bytes that a contribution to the assignment can have, before the first is read.

    Raises ``round.closed``, ``lease.lost`` and ``request.too_large`` for what would not be accepted. Where one has been
    accepted, only the same again is of use.
    """
    with context.database.read() as s:
        accepted = contributions.of_assignment(s, assignment.id)
        if accepted is not None:
            return accepted.size
        leases.check_held(s, assignment.id, fence)
        experiment = experiments.get(s, assignment.experiment_id)
    spec = ExperimentSpec.model_validate(experiment.spec)
    size, limit = catalog.algorithm_config(spec.algorithm).size(_shapes(experiment)), context.settings.max_upload_bytes
    if size.arrays > limit:
        detail = f"a contribution to this experiment has {size.arrays} bytes, this service takes at most {limit}: ask"
        raise FerretError("request.too_large", f"{detail} its operator to raise FERRET_MAX_UPLOAD_BYTES")
    return size.total


def refuse(context: Context, assignment_id: str, error: FerretError) -> None:
    """Notes that an upload was refused, and why; not where the service itself failed and may take it the next time."""
    if error.problem.status < 500:
        with context.database.begin() as s:
            leases.refuse(s, assignment_id, error)


def _take(context: Context, assignment: tables.Assignment, delivery: Delivery) -> tuple[Accepted, bool]:
    with context.database.read() as s:
        experiment = experiments.get(s, assignment.experiment_id)
        accepted = contributions.of_assignment(s, assignment.id)
    digest = _digest(delivery.body)
    if accepted is not None and accepted.digest == digest:
        return _acknowledged(accepted), True
    try:
        sealed = _opened(delivery.body, digest, assignment, experiment)
    except FerretError as error:
        with context.database.begin() as s:
            leases.spoilt(s, assignment.id, delivery.fence, error)
        raise
    with context.database.read() as s:  # what comes in vain is not even stored
        leases.check(s, assignment.id, delivery.fence, sealed, delivery.key)
        signature = _signature(s, assignment, sealed, delivery.signature)
    _store(context.storage, delivery.body, digest)
    failpoint("upload.stored")
    cost = LocalCost.reported(delivery.seconds, sealed.meta.metrics)
    with context.database.begin() as s:
        row = leases.accept(
            s,
            assignment.id,
            delivery.fence,
            sealed,
            cost=cost,
            idempotency_key=delivery.key,
            signature=signature,
        )
    failpoint("upload.accepted")
    return _acknowledged(row), False


def _signature(s: Session, assignment: tables.Assignment, sealed: Sealed, given: str | None) -> Signature | None:
    """The participant's, verified; None of one that joined without a key. Raises ``signature.invalid``."""
    key = participants.public_key(s, assignment.participant_id or "")
    if key is None:
        return None
    meta = sealed.meta
    signed = Signed(meta.experiment, meta.round, meta.participant, meta.base_digest, assignment.id, sealed.digest)
    return Signature(assignment.participant, key, assignment.id, require_valid(key, given, signed))


def _digest(body: bytes | Path) -> str:
    if isinstance(body, bytes):
        return digest_bytes(body)
    with body.open("rb") as file:
        return digest_stream(file)


def _opened(body: bytes | Path, digest: str, assignment: tables.Assignment, experiment: tables.Experiment) -> Sealed:
    spec, task = ExperimentSpec.model_validate(experiment.spec), RoundTask.model_validate(assignment.task)
    if isinstance(body, bytes):
        return unseal(body, spec, task, _shapes(experiment), digest)
    with body.open("rb") as file:
        return unseal(mapped(file), spec, task, _shapes(experiment), digest)


def _store(storage: Storage, body: bytes | Path, digest: str) -> None:
    if isinstance(body, bytes):
        storage.put_bytes(body, FileKind.CONTRIBUTION, digest)
    else:
        storage.put_file(body, FileKind.CONTRIBUTION, digest)


def _shapes(experiment: tables.Experiment) -> Shapes:
    # A database may hand an object's members out in any order; the canonical one is by name.
    return {name: tuple(shape) for name, shape in sorted((experiment.shapes or {}).items())}


def _acknowledged(row: tables.Contribution) -> Accepted:
    return Accepted(digest=row.digest, size=row.size, round=row.round, accepted=True)
