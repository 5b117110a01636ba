"""The power of scores to separate members from others: AUC, TPR at 1 % FPR, and the ε of an audit in one run.

The audit is that of Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023,
https://arxiv.org/abs/2305.08846, theorem 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FALSE_ALARMS = 0.01
"""The share of non-members that a threshold may take for members."""
RESAMPLES = 200
TAILS = (2.5, 97.5)
DELTA = 1e-5
DOUBT = 0.05
Reals = NDArray[np.float64]


class Scores(NamedTuple):
    """One draw of texts: ``values``, fp64, and ``members``, bool, both (targets, candidates).

    A higher value says member. Candidates are compared only within their stratum: ``strata``, int (candidates,).
    """

    values: Reals
    members: NDArray[np.bool_]
    strata: NDArray[np.int64]


def one_target(values: Reals, members: NDArray[np.bool_]) -> Scores:
    """Returns the scores of one target, with all candidates in one stratum."""
    return Scores(values[None], members[None], np.zeros(len(values), np.int64))


class Estimate(NamedTuple):
    """A share between 0 and 1, and its 95 % interval."""

    value: float
    low: float
    high: float


class Power(NamedTuple):
    """Means over the targets: the area under the ROC curve, and the share of members found at 1 % false alarms."""

    auc: Estimate
    tpr: Estimate


def power(draws: Sequence[Scores], resamples: int = RESAMPLES, seed: int = 0) -> Power:
    """Returns the power of the scores, with percentile intervals of a bootstrap over candidates and targets.

    Targets without members or without others do not count.
    """
    rng = np.random.default_rng(seed)
    total, count = np.zeros((1 + resamples, 2)), np.zeros((1 + resamples, 1))
    for scores in draws:
        targets, candidates = scores.values.shape
        columns, rows = _drawn(rng, candidates, resamples), _drawn(rng, targets, resamples)
        for target in range(targets):
            rates = _rates(scores, target, columns)
            known, weight = ~np.isnan(rates[:, :1]), rows[:, target, None]
            total += np.where(known, rates, 0.0) * weight
            count += known * weight
    with np.errstate(invalid="ignore"):
        means = total / count
    low, high = np.nanpercentile(means[1:], TAILS, axis=0)
    return Power(*(Estimate(*map(float, each)) for each in zip(means[0], low, high, strict=True)))


def _drawn(rng: np.random.Generator, count: int, resamples: int) -> Reals:
    """Returns how often each of ``count`` counts in each resample, fp64 (1 + resamples, count); the first is the
    sample itself."""
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=resamples)
    return np.concatenate([np.ones((1, count)), drawn.astype(np.float64)])


def _rates(scores: Scores, target: int, columns: Reals) -> Reals:
    """Returns AUC and TPR of a target, fp64 (1 + resamples, 2); NaN without members. Each stratum counts as often as
    its members."""
    total, count = np.zeros((len(columns), 2)), np.zeros((len(columns), 1))
    for stratum in np.unique(scores.strata):
        chosen = scores.strata == stratum
        values, members = scores.values[target, chosen], scores.members[target, chosen]
        if not members.any() or members.all():
            continue
        rates, inside = _of_stratum(values, members, columns[:, chosen])
        total += rates * inside
        count += inside
    with np.errstate(invalid="ignore"):
        return total / count


def _of_stratum(values: Reals, members: NDArray[np.bool_], weights: Reals) -> tuple[Reals, Reals]:
    """Returns (AUC, TPR) and the weight of the members, 0 where a resample has only one kind."""
    order = np.argsort(values, kind="stable")
    values, members, weights = values[order], members[order], weights[:, order]
    others = np.cumsum(np.pad(weights * ~members, ((0, 0), (1, 0))), axis=1)
    below = others[:, np.searchsorted(values, values, "left")]
    ties = others[:, np.searchsorted(values, values, "right")] - below
    inside, outside = weights * members, others[:, -1:]
    count = inside.sum(axis=1, keepdims=True)
    # The rank of a further text among the others would be uniform: (k + 1) / (n + 1) above k of n, not k / n.
    found = outside - below + 1 <= FALSE_ALARMS * (outside + 1)
    sums = np.stack([(inside * (below + ties / 2)).sum(axis=1), (inside * found).sum(axis=1)], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = sums / np.concatenate([count * outside, count], axis=1)
    usable = (count > 0) & (outside > 0)
    return np.where(usable, rates, 0.0), np.where(usable, count, 0.0)


def audited_epsilon(scores: Scores, guesses: int, delta: float = DELTA) -> float:
    """Returns the largest ε that a run contradicts with 95 % confidence: under (ε, ``delta``)-differential privacy so
    many guesses would not be right. The toss of a coin has decided on each candidate.

    The ``guesses`` / 2 highest scores of the first target are guessed to be members, the ``guesses`` / 2 lowest to be
    none; their number must not depend on the scores.
    """
    order = np.argsort(scores.values[0], kind="stable")
    half, members = guesses // 2, scores.members[0]
    right = int(members[order[len(order) - half :]].sum() + (~members[order[:half]]).sum())
    low, high = 0.0, 20.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if _doubt(middle, 2 * half, right, len(order), delta) < DOUBT else (low, middle)
    return low


def _doubt(epsilon: float, guesses: int, right: int, candidates: int, delta: float) -> float:
    """Returns the bound on the probability of ``right`` or more right guesses under (ε, δ)-differential privacy."""
    chance = 1 / (1 + math.exp(-epsilon))
    point = [
        math.exp(
            math.lgamma(guesses + 1)
            - math.lgamma(count + 1)
            - math.lgamma(guesses - count + 1)
            + count * math.log(chance)
            - (guesses - count) * (epsilon + math.log1p(math.exp(-epsilon)))
        )
        for count in range(guesses + 1)
    ]
    tail = math.fsum(point[right:])
    steps = (math.fsum(point[right - i : right]) / i for i in range(1, right + 1))
    return tail + 2 * candidates * delta * max(steps, default=0.0)


def as_json(found: Power) -> dict[str, Any]:
    """Returns ``auc`` and ``tpr``, each with ``value``, ``low`` and ``high``."""
    return {name: estimate._asdict() for name, estimate in found._asdict().items()}
