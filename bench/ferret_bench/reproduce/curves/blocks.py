"""Convergence, generalisation and time of projection under a varying number of blocks L (the paper's figure 5)."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import EVAL_LOSS, LOCAL, ROUGE_L, TRAIN_LOSS
from ferret_bench.reproduce.reruns.study import Panel, Study, Variant

COUNTS = (1, 8, 64, 194)

STUDY = Study(
    title="Varying L",
    lead="Equal blocks, one per tensor, and those of the published code. The local update's time holds the projection.",
    rows=("ferret_paper",),
    datasets=("natural_instructions",),
    quantities=(EVAL_LOSS, ROUGE_L, LOCAL),
    panels=(Panel("Convergence", TRAIN_LOSS), Panel("Generalisation", EVAL_LOSS), Panel("Local update", LOCAL)),
    parts={"evaluation": {"every": 1}},
    variants={
        "ferret": {
            **{f"L{count}": Variant(f"L = {count}", {"algorithm": {"blocks": count}}) for count in COUNTS},
            "tensor": Variant("one per tensor", {"algorithm": {"blocks": "tensor"}}),
            "grouped": Variant("as published", {"algorithm": {"blocks": "grouped"}}),
        }
    },
    seeds=1,
)
