"""Updates of random coordinates, as a round of Ferret has them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ferret_core.catalog import ResolvedExperiment
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import encode

SMALL = 1e-4
"""Size of a coordinate: the step is far shorter than the weights."""


def update(spec: ExperimentSpec, shapes: Mapping[str, tuple[int, ...]], contributions: int) -> bytes:
    """Returns the blob of a round with this number of contributions, in fp32. Under a shared seed they are summed."""
    projection = ResolvedExperiment.of(spec).traits.projection
    assert projection is not None
    blocks = projection.cut(shapes)
    K = projection.allocate([1.0] * len(blocks), blocks)
    senders = 1 if projection.seeds == "shared" else contributions
    drawn = np.random.default_rng(1).standard_normal(senders * sum(K), dtype=np.float32)
    arrays = {
        "seeds": np.arange(senders, dtype=np.uint64),
        "K": np.array([K] * senders, np.int32),
        "weights": np.ones(senders, np.float32),
        "rounding": np.array([1], np.uint64),
        "coordinates": np.float32(SMALL) * drawn,
        "coordinates.lengths": np.full(senders, sum(K), np.int32),
    }
    return encode(arrays, {"round": 1})
