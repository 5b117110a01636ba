"""A block's terms in the form that compiled code accepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ferret_core.projection.kernels._base import ReconstructionTerm
from ferret_core.projection.kernels.cpu._philox import keys


class Terms(NamedTuple):
    """All terms' coefficients concatenated, fp32, with their offsets, counts and keys."""

    coefficients: NDArray[np.float32]
    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]
    keys: NDArray[np.uint32]


def packed(terms: Sequence[ReconstructionTerm]) -> Terms | None:
    """Packs the terms with coefficients; returns None without any. A single term is not copied."""
    sent = [term for term in terms if len(term.coefficients)]
    if not sent:
        return None
    counts = np.array([len(term.coefficients) for term in sent], np.int64)
    joined = torch.cat([term.coefficients for term in sent]) if len(sent) > 1 else sent[0].coefficients
    return Terms(joined.numpy(), np.cumsum(counts) - counts, counts, keys([term.seed for term in sent]))
