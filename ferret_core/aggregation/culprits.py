"""Culprits: participants that break a round, searched by leave-one-out."""

from __future__ import annotations

from ferret_core.aggregation.candidate import Candidate, CandidateBuilder
from ferret_core.aggregation.selection import Selection

MAX_TRIALS = 16
"""Maximum number of candidates built in the search for the culprits of a round."""


def reject_culprits(
    builder: CandidateBuilder, selection: Selection, candidate: Candidate
) -> tuple[Selection, Candidate]:
    """Returns the selection without the culprits and its candidate, held by the replica; returns the input if it is
    sound, or if no culprits are found.

    Raises ``round.diverged``, with the replica at its base, where fewer than half of the contributions are left.
    """
    if candidate.broken is None:
        return selection, candidate
    builder.roll_back()
    reason = f"the round breaks the model with it, and not without it: {candidate.broken}"
    selection = selection.reject(dict.fromkeys(find_culprits(builder, selection), reason))
    selection.require_majority()
    return selection, builder.build(selection)


def find_culprits(builder: CandidateBuilder, selection: Selection) -> list[str]:
    """Returns the participants to exclude, each with the largest drop of the loss, until the round is sound.
    The longest updates are tried first.

    The replica is at its base before and after.
    """
    suspects = sorted(selection.accepted, key=lambda each: -each.norms.total)
    culprits: list[str] = []
    trials = 0
    while len(suspects) >= 3 and trials < MAX_TRIALS:
        losses: list[tuple[float, int]] = []
        for position, suspect in enumerate(suspects[: MAX_TRIALS - trials]):
            candidate = builder.build_without(selection, {*culprits, suspect.participant})
            builder.roll_back()
            trials += 1
            if candidate.broken is None:
                return [*culprits, suspect.participant]
            losses.append((candidate.loss, position))
        culprits.append(suspects.pop(min(losses)[1]).participant)
    return []
