"""Checks that an assignment may still be acted on: its round is open, and the fence is current."""

from __future__ import annotations

from datetime import datetime

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, RoundState
from ferret_db.repositories import experiments
from ferret_db.tables import Assignment, Experiment, Round


def check_open(experiment: Experiment, round_: Round) -> None:
    """Raises ``round.closed``, which names the current round."""
    if round_.state == RoundState.OPEN:
        return
    current = experiments.current_round(experiment)
    now = f"the current round is {current}; ask for the next assignment" if current else "there will be no more rounds"
    raise FerretError(
        "round.closed",
        f"round {round_.number}, attempt {round_.attempt}, is {round_.state}; {now}",
        members={"current_round": current},
    )


def check_held(assignment: Assignment, fence: int, now: datetime) -> None:
    """Raises ``lease.lost`` unless ``fence`` holds the assignment."""
    if assignment.state != AssignmentState.LEASED or assignment.fence != fence:
        raise lost(assignment, fence)
    if assignment.lease_until is not None and assignment.lease_until <= now:
        message = f"the lease on {assignment.id} ran out at {assignment.lease_until.isoformat()}"
        raise FerretError("lease.lost", f"{message}; discard this work and ask for the next assignment")


def lost(assignment: Assignment, fence: int) -> FerretError:
    """Returns ``lease.lost``: the fence is not, or no longer, the assignment's."""
    return FerretError(
        "lease.lost",
        f"fence {fence} does not hold {assignment.id}, which is {assignment.state} under fence {assignment.fence}; "
        "discard this work and ask for the next assignment",
    )
