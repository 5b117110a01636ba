"""The step guard: limits the step of a round's update by its losses, and estimates the noise from them.

    L₀, L½, L₁: the loss on the development sequences before the round, at half of its step and at the whole one
    the step is halved until the loss is at most L₀ + max_loss_rise · max(L₀, 1 nat)        (1, ½, ¼, … 2⁻¹⁰)
    L(a) = L₀ − g a + c a²/2 through the three; a* = g / c is where it is least; ρ̂ = 1/a* − 1 = c/g − 1
    where the step was halved to a, the parabola goes through L₀, L(a) and L(2a): it holds near 0 alone

It is not a line search: a step that raises the loss a little is taken whole. Steps that are optimal for their round
were measured to end with a higher loss than full ones: they gain in this round at the expense of the next rounds'
progress.
"""

from __future__ import annotations

import math

from ferret_core.aggregation.candidate import Candidate, CandidateBuilder
from ferret_core.aggregation.loss_guard import LEAST_LOSS
from ferret_core.ledger.record import MOST_HALVINGS
from ferret_core.system.failpoints import failpoint

MOST_NOISE = 2.0**MOST_HALVINGS - 1
"""ρ̂ of a round with its best step below the minimum, or with an ascent direction."""


def shorten_step(builder: CandidateBuilder, candidate: Candidate) -> tuple[Candidate, dict[str, float]]:
    """Returns the candidate at the longest step that the guard accepts, or at the minimum step if it accepts none; and
    the metrics measured on development sequences. The replica holds that candidate.
    """
    server = builder.replica.spec.server
    if not server.step_guard:
        return candidate, {}
    candidate, ratio = _halved(builder, candidate, loss_limit(builder.loss_before, server.max_loss_rise))
    return candidate, {
        "step_taken": 100 * candidate.step,
        "noise_ratio": ratio,
        "development_loss": candidate.loss,
    }


def _halved(builder: CandidateBuilder, candidate: Candidate, limit: float) -> tuple[Candidate, float]:
    """Returns the candidate with a loss of at most ``limit``, and ρ̂."""
    ratio = noise_ratio(builder.loss_before, candidate.half_loss, candidate.loss)
    failpoint("aggregate.guarded")
    while candidate.update and (candidate.broken or candidate.loss > limit) and candidate.halvings < MOST_HALVINGS:
        builder.roll_back()
        longer, candidate = candidate, builder.apply(candidate.update, candidate.halvings + 1)
        ratio = noise_ratio(builder.loss_before, candidate.loss, longer.loss, longer.step)
    return candidate, ratio


def loss_limit(before: float, rise: float) -> float:
    """Returns the highest accepted loss for a round that began at ``before``."""
    return before + rise * max(before, LEAST_LOSS)


def noise_ratio(before: float, half: float, whole: float, step: float = 1.0) -> float:
    """Returns ρ̂ of a round, from its losses at steps 0, ``step`` / 2 and ``step``: between −1, where no step is too
    long, and ``MOST_NOISE``.

    If the full step would be the best without noise, the best step gains 1 / (1 + ρ̂) of that gain.
    """
    curvature = 4 * (whole - 2 * half + before)
    slope = whole - 4 * half + 3 * before
    if not math.isfinite(curvature) or slope <= 0:
        return MOST_NOISE
    return min(max(curvature / slope / step, 0) - 1, MOST_NOISE)
