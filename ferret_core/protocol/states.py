"""The states of experiments, rounds and assignments, and the allowed transitions."""

from __future__ import annotations

from enum import StrEnum


class ExperimentState(StrEnum):
    """queued → running ⇄ paused → completed | failed | cancelled; an extended experiment runs again after
    completion."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def finished(self) -> bool:
        return self in {self.COMPLETED, self.FAILED, self.CANCELLED}


class RoundState(StrEnum):
    """(opening →) open → frozen → committed | abandoned. A round of many participants is prepared while it is opening:
    its assignments are not available yet."""

    OPENING = "opening"
    OPEN = "open"
    FROZEN = "frozen"
    COMMITTED = "committed"
    ABANDONED = "abandoned"


class SumStage(StrEnum):
    """Stage of a round that is a secure sum: deal → mask, while the round is open; agree → release → sum, while it is
    frozen. In the last, every message has arrived."""

    DEAL = "deal"
    MASK = "mask"
    AGREE = "agree"
    RELEASE = "release"
    SUM = "sum"


class AssignmentState(StrEnum):
    """pending → leased → accepted | rejected | expired; a lost lease returns to pending.

    accepted → rejected: the round left the contribution out.
    """

    PENDING = "pending"
    LEASED = "leased"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXPIRED = "expired"

    @property
    def finished(self) -> bool:
        return self in {self.ACCEPTED, self.REJECTED, self.EXPIRED}


class ParticipantKind(StrEnum):
    """Kind of participant: a simulated client on a worker of the service, or a real participant at the edge."""

    SIMULATED = "simulated"
    EDGE = "edge"


class ParticipantState(StrEnum):
    """pending → active | refused, if approval is required, else active from the start; active → revoked."""

    PENDING = "pending"
    ACTIVE = "active"
    REFUSED = "refused"
    REVOKED = "revoked"


class WaitReason(StrEnum):
    """The event that a participant without an assignment waits for: its approval, others to join before round 1, the
    next round, the others' contributions to the open round, the model of a closed round, the end of a pause, or the
    end."""

    APPROVAL = "approval"
    PARTICIPANTS = "participants"
    ROUND = "round"
    CONTRIBUTIONS = "contributions"
    MODEL = "model"
    RESUMPTION = "resumption"
    END = "end"


MOVES: dict[StrEnum, frozenset[StrEnum]] = {
    ExperimentState.QUEUED: frozenset({ExperimentState.RUNNING, ExperimentState.FAILED, ExperimentState.CANCELLED}),
    ExperimentState.RUNNING: frozenset(
        {ExperimentState.PAUSED, ExperimentState.COMPLETED, ExperimentState.FAILED, ExperimentState.CANCELLED}
    ),
    ExperimentState.PAUSED: frozenset({ExperimentState.RUNNING, ExperimentState.FAILED, ExperimentState.CANCELLED}),
    ExperimentState.COMPLETED: frozenset({ExperimentState.RUNNING}),
    RoundState.OPENING: frozenset({RoundState.OPEN, RoundState.ABANDONED}),
    RoundState.OPEN: frozenset({RoundState.FROZEN, RoundState.ABANDONED}),
    RoundState.FROZEN: frozenset({RoundState.COMMITTED, RoundState.ABANDONED}),
    AssignmentState.PENDING: frozenset({AssignmentState.LEASED, AssignmentState.REJECTED, AssignmentState.EXPIRED}),
    AssignmentState.LEASED: frozenset(
        {AssignmentState.PENDING, AssignmentState.ACCEPTED, AssignmentState.REJECTED, AssignmentState.EXPIRED}
    ),
    AssignmentState.ACCEPTED: frozenset({AssignmentState.REJECTED}),
}


def may_move(before: StrEnum, after: StrEnum) -> bool:
    """True if the transition is one of :data:`MOVES`; finished states have none."""
    return after in MOVES.get(before, frozenset())
