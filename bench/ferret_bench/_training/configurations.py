"""Ways to train all parameters of a model, from the largest memory to the smallest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferret_bench._projection.llama import Shape

SGD = {"optimizer": "sgd", "learning_rate": 1e-6}
NORMALIZED = {"optimizer": "normalized", "learning_rate": 1e-6}
IN_BACKWARD = {"optimizer_in_backward": True}
CHECKPOINTED = {"activation_checkpointing": True}
PURE = {"precision": "pure_bfloat16"}

WAYS: Mapping[str, Mapping[str, Any]] = {
    "adam": {"optimizer": "adam"},
    "adam, checkpointed": {"optimizer": "adam", **CHECKPOINTED},
    "adafactor": {"optimizer": "adafactor"},
    "sgd": SGD,
    "sgd, checkpointed": {**SGD, **CHECKPOINTED},
    "sgd in backward": {**SGD, **IN_BACKWARD},
    "sgd in backward, checkpointed": {**SGD, **IN_BACKWARD, **CHECKPOINTED},
    "normalized": NORMALIZED,
    "normalized in backward": {**NORMALIZED, **IN_BACKWARD},
    "normalized in backward, checkpointed": {**NORMALIZED, **IN_BACKWARD, **CHECKPOINTED},
    "normalized in backward, checkpointed, pure bf16": {**NORMALIZED, **IN_BACKWARD, **CHECKPOINTED, **PURE},
}
"""Options of ``LocalConfig`` by name."""
MOST_COPIES = 5
"""Weights, gradients, Adam's two moments, and on the CPU the originals."""

SMALL = Shape("LLaMA-91M", 768, 12, 12, 2048, 4096)
"""A model for a CPU. Its vocabulary is small, so that embedding and output have the same share as in LLaMA-3B."""
