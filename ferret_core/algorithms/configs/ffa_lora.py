"""FFA-LoRA's options and contributions: the update of the adapters' second factors."""

from __future__ import annotations

from ferret_core.algorithms.configs.base import LowRank


class Config(LowRank):
    """FFA-LoRA's options; rank, targets and Adam are FedIT's, so that the two can be compared."""
