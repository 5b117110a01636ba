"""Taking a contribution: decoded, checked against its assignment, stored, and then accepted in one transaction.

What cannot be taken is noted with its reason, and moves nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from api.context import Context
from api.participants.schemas import Receipt
from ferret_core.cost import LocalCost
from ferret_core.failpoints import failpoint
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.wire import REPORTED, Contribution, malformed
from ferret_db import tables
from ferret_db.engine import assignments as leases
from ferret_db.repositories import contributions, experiments


class Upload(NamedTuple):
    """A contribution as it arrived; ``seconds`` are those of the local update, ``key`` its idempotency key."""

    blob: bytes
    fence: int
    seconds: float
    key: str | None


def take(context: Context, assignment: tables.Assignment, upload: Upload) -> tuple[Receipt, bool]:
    """The receipt, and whether the same upload was accepted before.

    A blob that cannot be used rejects the assignment with its reason, which is raised; it is never stored.
    """
    try:
        return _take(context, assignment, upload)
    except FerretError as error:
        refuse(context, assignment.id, error)
        raise


def refuse(context: Context, assignment_id: str, error: FerretError) -> None:
    """Notes that an upload was refused, and why; not where the service itself failed and may take it the next time."""
    if error.problem.status < 500:
        with context.database.begin() as s:
            leases.refuse(s, assignment_id, error)


def _take(context: Context, assignment: tables.Assignment, upload: Upload) -> tuple[Receipt, bool]:
    digest = digest_bytes(upload.blob)
    with context.database.read() as s:
        experiment = experiments.get(s, assignment.experiment_id)
        accepted = contributions.of_assignment(s, assignment.id)
    if accepted is not None and accepted.digest == digest:
        return _receipt(accepted), True
    try:
        meta = _checked(upload.blob, assignment, experiment).meta
    except FerretError as error:
        with context.database.begin() as s:
            leases.reject(s, assignment.id, upload.fence, error)
        raise
    with context.database.read() as s:  # what comes in vain is not even stored
        leases.check(s, assignment.id, upload.fence, digest=digest, meta=meta, idempotency_key=upload.key)
    stored = context.storage.put_bytes(upload.blob, "contributions")
    failpoint("upload.stored")
    with context.database.begin() as s:
        row = leases.accept(
            s,
            assignment.id,
            upload.fence,
            digest=stored.digest,
            size=stored.size,
            meta=meta,
            cost=LocalCost.reported(upload.seconds, meta),
            idempotency_key=upload.key,
        )
    failpoint("upload.accepted")
    return _receipt(row), False


def _checked(blob: bytes, assignment: tables.Assignment, experiment: tables.Experiment) -> Contribution:
    """The contribution, if it is what the assignment asked for and its algorithm can use it."""
    # An algorithm brings torch with it, which nothing else here needs.
    from ferret_core import catalog

    contribution = Contribution.decode(blob)
    spec = ExperimentSpec.model_validate(experiment.spec)
    task = RoundTask.model_validate(assignment.task)
    _check_identity(contribution, task, spec)
    # A database may hand an object's members out in any order; the canonical one is by name.
    shapes = {name: tuple(shape) for name, shape in sorted((experiment.shapes or {}).items())}
    catalog.algorithm(spec.algorithm).check(contribution, task, shapes)
    return contribution


def _check_identity(contribution: Contribution, task: RoundTask, spec: ExperimentSpec) -> None:
    """Raises ``contribution.malformed`` for another assignment's contribution, or a seed the service did not give.

    Another base model is ``contribution.wrong_base``, which the round engine raises: the participant can catch up.
    """
    meta = contribution.meta
    expected: dict[str, Any] = {
        "experiment": task.experiment,
        "round": task.round,
        "participant": task.participant,
        "algorithm": spec.algorithm.name,
    }
    for field, value in expected.items():
        if getattr(meta, field) != value:
            raise malformed(f"metadata.{field}", getattr(meta, field), f"the assignment says {value!r}")
    for name in sorted(set(meta.metrics) - REPORTED):
        raise malformed(f"metadata.metrics.{name}", meta.metrics[name], f"report no others than {sorted(REPORTED)}")
    if meta.seed not in {None, task.seed, task.round_seed}:
        raise malformed("metadata.seed", meta.seed, "is none of the assignment's seeds")


def _receipt(row: tables.Contribution) -> Receipt:
    return Receipt(digest=row.digest, size=row.size, round=row.round, accepted=True)
