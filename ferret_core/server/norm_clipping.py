"""Norm bounds: no participant moves the model much further than the round's median participant does.

Sun et al., "Can You Really Backdoor Federated Learning?", 2019, https://arxiv.org/abs/1911.07963, clip by a fixed norm;
here the bound follows the round, and also applies to each part of the model, because one part could otherwise take all
of an attack:

    t = median of the participants' norms over all parts;  t_l = max(their median in part l, t · √(d_l / d))
    e = the largest of ‖Δᵢ‖ / t and ‖Δᵢ,l‖ / t_l
    ‖Δᵢ‖ > reject_factor · t: the contribution is rejected
    e > clip_factor: it counts as (clip_factor / e) · Δᵢ, whole, so that its direction stays

t · √(d_l / d) is the norm in part l of a median update that moves all weights alike: if most send nothing for a part,
the few who do are not penalised. A median needs three participants. With fewer, and with a colluding majority, only
absurd norms are rejected: more than ``ABSURD`` times the norm of the weights themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ferret_core.algorithms.configs.norms import Norms
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RobustSpec
from ferret_core.protocol.wire import Array

ABSURD = 1e3
MEDIAN_OF = 3
"""Minimum number of participants for a meaningful median."""
DIGITS = 12
"""Binary digits of a factor: libraries with another summation order must give the same one."""


class NormVerdict(NamedTuple):
    """Verdict on a contribution: its ``factor``, 1 unless it is clipped, or the reason it is ``rejected``."""

    factor: float = 1.0
    rejected: str | None = None


def check_norms(spec: RobustSpec, norms: Sequence[Norms], weights_norm: float) -> list[NormVerdict]:
    """Returns one verdict for each of the round's contributions; ``weights_norm`` is the norm of the tuned weights."""
    limit = ABSURD * max(weights_norm, 1.0)
    totals = np.array([each.total for each in norms])
    verdicts = [NormVerdict(rejected=_absurd(total, limit) if not total <= limit else None) for total in totals]
    sane = [position for position, each in enumerate(verdicts) if each.rejected is None]
    if spec.rule == "none" or len(sane) < MEDIAN_OF:
        return verdicts
    typical = float(lower_median(totals[sane]))
    if typical == 0:
        return verdicts
    values, sizes = np.stack([norms[position].values for position in sane]), norms[sane[0]].sizes
    parts = np.maximum(lower_median(values), typical * np.sqrt(sizes / sizes.sum()))
    for position, own in zip(sane, values, strict=True):
        verdicts[position] = _verdict(spec, float(totals[position]) / typical, _excess(own, parts))
    return verdicts


def out_of_bounds(reason: str) -> FerretError:
    """Returns the error for the participant of a rejected contribution."""
    return FerretError("contribution.out_of_bounds", reason)


def lower_median(values: Array) -> Array:
    """Returns the median over the first axis; of two middle values the lower, which is more often the honest one."""
    middle = (len(values) - 1) // 2
    return np.partition(values, middle, axis=0)[middle]


def _excess(own: Array, typical: Array) -> float:
    """Returns the largest ratio of a part's norm to its typical norm; 0/0 counts as 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = own / typical
    return float(np.nan_to_num(ratios, nan=0.0, posinf=math.inf).max())


def _verdict(spec: RobustSpec, ratio: float, part: float) -> NormVerdict:
    if ratio > spec.reject_factor:
        reason = (
            f"its norm is {ratio:.3g} times the round's median, beyond robust.reject_factor = {spec.reject_factor:g}"
        )
        return NormVerdict(rejected=reason)
    excess = max(ratio, part)
    if spec.rule not in ("clip", "cosine_filter") or excess <= spec.clip_factor:
        return NormVerdict()
    return NormVerdict(factor=_rounded(spec.clip_factor / excess))


def _absurd(total: float, limit: float) -> str:
    return f"its norm is {total:.3g}, beyond {limit:.3g}, {ABSURD:g} times that of the weights"


def _rounded(factor: float) -> float:
    """Rounds down to ``DIGITS`` binary digits."""
    mantissa, exponent = math.frexp(factor)
    return math.ldexp(math.floor(math.ldexp(mantissa, DIGITS)), exponent - DIGITS)
