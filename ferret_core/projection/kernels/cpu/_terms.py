"""A block's terms as compiled code takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ferret_core.projection.kernels._base import Term
from ferret_core.projection.kernels.cpu._philox import keys


class Terms(NamedTuple):
    """Every term's coefficients one after the other, fp32; where each begins, how many they are, and their keys."""

    coefficients: NDArray[np.float32]
    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]
    keys: NDArray[np.uint32]


def packed(terms: Sequence[Term]) -> Terms | None:
    """Terms that have coefficients, or None; a single one's are not copied."""
    sent = [term for term in terms if len(term.coefficients)]
    if not sent:
        return None
    counts = np.array([len(term.coefficients) for term in sent], np.int64)
    joined = torch.cat([term.coefficients for term in sent]) if len(sent) > 1 else sent[0].coefficients
    return Terms(joined.numpy(), np.cumsum(counts) - counts, counts, keys([term.seed for term in sent]))
