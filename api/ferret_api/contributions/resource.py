"""A contribution as the API shows it."""

from __future__ import annotations

from collections.abc import Mapping

from ferret_core.protocol.resources.base import Failure
from ferret_core.protocol.resources.rounds import Contribution
from ferret_db.repositories.contributions import Report


def of(report: Report, display_names: Mapping[str, str]) -> Contribution:
    """Whoever is not among the real participants' ``display_names`` is simulated."""
    assignment, attempt, accepted = report
    return Contribution(
        participant=assignment.participant,
        display_name=display_names.get(assignment.participant, assignment.participant),
        kind=assignment.kind,
        round=assignment.round,
        attempt=attempt,
        state=assignment.state,
        digest=accepted.digest if accepted else None,
        size=accepted.size if accepted else None,
        bytes_down=accepted.bytes_down if accepted else None,
        examples=accepted.examples if accepted else None,
        metrics=accepted.metrics if accepted else {},
        seconds=assignment.seconds,
        factor=accepted.factor if accepted else None,
        error=Failure.model_validate(assignment.error) if assignment.error else None,
        created_at=assignment.created_at,
    )
