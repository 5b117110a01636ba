"""A contribution as the API shows it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import Field

from ferret_api.schemas import Failure, Page, Resource
from ferret_core.protocol.states import AssignmentState, ParticipantKind
from ferret_db.repositories.contributions import Report


class Contribution(Resource):
    """One participant's part in one round, from the assignment to what was accepted or why it was not."""

    participant: str
    display_name: str = Field(description="What people call the participant")
    kind: ParticipantKind
    round: int
    attempt: int = Field(description="Which attempt at the round: 1, or more after attempts without a quorum")
    state: AssignmentState
    digest: str | None = Field(description="Digest of the accepted contribution")
    size: int | None = Field(description="Bytes sent")
    bytes_down: int | None = Field(description="Bytes received")
    examples: int | None = Field(description="Examples trained on")
    metrics: dict[str, float] = Field(description="The participant's own figures, e.g. its train loss")
    seconds: float | None = Field(description="Seconds of local training, projection included")
    factor: float | None = Field(description="What the round multiplied its update by, where that was clipped")
    error: Failure | None
    created_at: datetime

    @classmethod
    def of(cls, report: Report, display_names: Mapping[str, str]) -> Contribution:
        """Whoever is not among the real participants' ``display_names`` is simulated."""
        assignment, attempt, accepted = report
        return cls(
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


class ContributionPage(Page[Contribution]):
    """Contributions by round and attempt, then by participant."""
