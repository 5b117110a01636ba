"""Candidates for the next model: an update, and the state of the resulting model; and the search for participants that
break it."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from ferret_core.aggregation.loss_guard import LossGuard, divergence_limit
from ferret_core.aggregation.selection import Selection
from ferret_core.models.parameters import finite
from ferret_core.protocol.errors import FerretError
from ferret_core.replica.replica import Replica

MAX_TRIALS = 16
"""Maximum number of candidates built in the search for the culprits of a round."""


class Candidate(NamedTuple):
    """The model at 2^-``halvings`` of an update's step: its loss, and the reason if it is ``broken``.

    ``half_loss`` is the loss at half of the whole step, if measured.
    """

    update: bytes
    loss: float
    broken: str | None
    half_loss: float = math.nan
    halvings: int = 0

    @property
    def step(self) -> float:
        """The fraction of the update's step that is applied."""
        return 0.5**self.halvings


class CandidateBuilder:
    """Builds candidates from ``base``, the current model of ``replica``; the replica holds the last one built.

    ``loss_before`` is the base's loss, NaN without a ``guard``. A candidate with a loss above ``loss_limit`` is broken.
    """

    def __init__(self, replica: Replica, guard: LossGuard | None) -> None:
        self.replica = replica
        self.base = replica.snapshot()
        self.loss_before, self.loss_limit = math.nan, math.inf
        self._guard = guard
        if guard is not None:
            self.loss_before = guard.loss_of(replica.digest, replica.model)
            self.loss_limit = divergence_limit(self.loss_before, replica.spec.robust.max_loss_ratio)

    def build(self, selection: Selection) -> Candidate:
        """Builds a candidate from the selected contributions; with a step guard, also measures the half step's loss."""
        return self._build(selection, (), measure_half=self.replica.spec.server.step_guard)

    def build_without(self, selection: Selection, excluded: Collection[str]) -> Candidate:
        """Builds the candidate without the ``excluded`` participants, and without the loss at half of the step."""
        return self._build(selection, excluded, measure_half=False)

    def _build(self, selection: Selection, excluded: Collection[str], *, measure_half: bool) -> Candidate:
        try:
            # A broken round may overflow; its result shows that.
            with np.errstate(over="ignore", invalid="ignore"):
                update = self.replica.aggregate(selection.read(excluded), selection.factors)
                half_loss = math.nan
                if measure_half:
                    half_loss = self.apply(update, halvings=1).loss
                    self.roll_back()
                return self.apply(update)._replace(half_loss=half_loss)
        except FerretError as error:
            if error.code != "contribution.non_finite":
                raise
            return Candidate(b"", math.inf, "the update is not finite")

    def apply(self, update: bytes, halvings: int = 0) -> Candidate:
        """Moves the replica from its base by 2^-``halvings`` of the update's step."""
        self.replica.apply(update, halvings)
        if not finite(self.replica.model):
            return Candidate(update, math.inf, "the weights are not finite", halvings=halvings)
        loss = self._guard.loss(self.replica.model) if self._guard is not None else 0.0
        broken = None
        if not loss <= self.loss_limit:
            broken = f"the held-out loss rises to {loss:.3g}, beyond {self.loss_limit:.3g}"
        return Candidate(update, loss, broken, halvings=halvings)

    def roll_back(self) -> None:
        """Restores the replica to its base."""
        self.replica.restore(self.base)

    def accept(self, selection: Selection, candidate: Candidate) -> None:
        """Accepts the candidate that the replica holds as the round's model.

        Raises ``round.diverged``, with the replica at its base, where it is broken.
        """
        if candidate.broken is not None:
            self.roll_back()
            raise selection.exploded(candidate.broken)
        self.replica.update_digest()
        if self._guard is not None:
            self._guard.remember(self.replica.digest, candidate.loss)


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
