"""FedIT's options and contributions: the update of the adapters."""

from __future__ import annotations

from ferret_core.algorithms.configs.base import LowRank, Preset

PRESETS = {
    "fedit_sgd": Preset(
        "FedIT-SGD: FedIT with plain gradient descent instead of Adam.",
        {"local": {"optimizer": "sgd", "learning_rate": 1e-2}},
    )
}


class Config(LowRank):
    """FedIT's options: rank 8 on queries and values; the authors' code uses rank 16, on queries alone."""
