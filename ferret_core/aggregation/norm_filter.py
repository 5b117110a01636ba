"""The norm filter: clips and rejects contributions by their norms (:mod:`ferret_core.server.norm_clipping`)."""

from __future__ import annotations

from dataclasses import replace

from ferret_core.aggregation.selection import Selection
from ferret_core.models.parameters import weights_norm
from ferret_core.replica.replica import Replica
from ferret_core.server.norm_clipping import check_norms


def filter_by_norm(replica: Replica, selection: Selection) -> Selection:
    """Returns the selection with the factors of clipped contributions and without rejected ones."""
    verdicts = check_norms(replica.spec.robust, selection.norms, weights_norm(replica.model))
    by_name = {each.participant: verdict for each, verdict in zip(selection.accepted, verdicts, strict=True)}
    factors = {name: verdict.factor for name, verdict in by_name.items() if verdict.factor != 1}
    rejected = {name: verdict.rejected for name, verdict in by_name.items() if verdict.rejected is not None}
    return replace(selection, factors=factors).reject(rejected)
