"""The step guard: how far a round's update is followed, and what its losses tell of the noise in it.

    L₀, L½, L₁: the loss on the development sequences before the round, at half of its step and at the whole one
    the step is halved until the loss is at most L₀ + rise · max(L₀, 1 nat)        (1, ½, ¼, … 2⁻¹⁰)
    L(a) = L₀ − g a + c a²/2 through the three; a* = g / c is where it is least; ρ̂ = 1/a* − 1 = c/g − 1
    where the step was halved to a, the parabola goes through L₀, L(a) and L(2a): it holds near 0 alone

It is no line search: a step that raises the loss a little is taken whole. Steps that are the best of their round were
measured to end above full ones: they buy this round's loss with the next rounds' progress.
"""

from __future__ import annotations

import math

from ferret_core.aggregation.candidate import Candidate, CandidateBuilder
from ferret_core.aggregation.loss_guard import LEAST_LOSS
from ferret_core.ledger.record import MOST_HALVINGS
from ferret_core.system.failpoints import failpoint

MOST_NOISE = 2.0**MOST_HALVINGS - 1
"""ρ̂ of a round whose best step would be below the least, or which leads uphill from the start."""


def shorten_step(builder: CandidateBuilder, candidate: Candidate) -> tuple[Candidate, dict[str, float]]:
    """The candidate at the longest step that the guard lets pass, or at the least step if there is none; and what was
    measured on development sequences, by metric. The replica stands at that candidate."""
    server, metrics = builder.replica.spec.server, dict[str, float]()
    if server.guards_step:
        candidate, ratio = _halved(builder, candidate, loss_limit(builder.loss_before, server.rise))
        metrics = {"step": 100 * candidate.step, "noise_ratio": ratio}
    if server.needs_development_split:
        metrics["development_loss"] = candidate.loss
    return candidate, metrics


def _halved(builder: CandidateBuilder, candidate: Candidate, limit: float) -> tuple[Candidate, float]:
    """The candidate whose loss is at most ``limit``, and ρ̂."""
    ratio = noise_ratio(builder.loss_before, candidate.half_loss, candidate.loss)
    failpoint("aggregate.guarded")
    while candidate.update and (candidate.broken or candidate.loss > limit) and candidate.halvings < MOST_HALVINGS:
        builder.roll_back()
        longer, candidate = candidate, builder.apply(candidate.update, candidate.halvings + 1)
        ratio = noise_ratio(builder.loss_before, candidate.loss, longer.loss, longer.step)
    return candidate, ratio


def loss_limit(before: float, rise: float) -> float:
    """The loss up to which a round that began at ``before`` is followed."""
    return before + rise * max(before, LEAST_LOSS)


def noise_ratio(before: float, half: float, whole: float, step: float = 1.0) -> float:
    """ρ̂ of a round, from its losses at steps 0, ``step`` / 2 and ``step``: between −1, where no step is too long, and
    ``MOST_NOISE``.

    Where the full step would be the best without noise, the best step gains 1 / (1 + ρ̂) of what it would gain then.
    """
    curvature = 4 * (whole - 2 * half + before)
    slope = whole - 4 * half + 3 * before
    if not math.isfinite(curvature) or slope <= 0:
        return MOST_NOISE
    return min(max(curvature / slope / step, 0) - 1, MOST_NOISE)
