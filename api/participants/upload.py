"""Taking a contribution: decoded, checked against its assignment, stored, and then accepted in one transaction."""

from __future__ import annotations

from typing import Any

from api.auth import Identity
from api.context import Context
from api.participants.schemas import Receipt
from api.participants.service import owned
from ferret_core.cost import LocalCost
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.wire import REPORTED, Contribution, malformed
from ferret_db import tables
from ferret_db.engine import assignments as leases
from ferret_db.repositories import contributions, experiments


def take(
    context: Context, participant: Identity, assignment_id: str, blob: bytes, fence: int, seconds: float
) -> tuple[Receipt, bool]:
    """The receipt, and whether the same blob was accepted before.

    A blob that cannot be used rejects the assignment with its reason, which is raised; it is never stored.
    """
    with context.database.read() as s:
        assignment = owned(s, participant, assignment_id)
        experiment = experiments.get(s, assignment.experiment_id)
        accepted = contributions.of_assignment(s, assignment_id)
    if accepted is not None and accepted.digest == digest_bytes(blob):
        return _receipt(accepted), True
    try:
        contribution = _checked(blob, assignment, experiment)
    except FerretError as error:
        with context.database.begin() as s:
            leases.reject(s, assignment_id, fence, error)
        raise
    stored = context.storage.put_bytes(blob, "contributions")
    with context.database.begin() as s:
        cost = LocalCost.reported(seconds, contribution.meta)
        row = leases.accept(
            s, assignment_id, fence, digest=stored.digest, size=stored.size, meta=contribution.meta, cost=cost
        )
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
