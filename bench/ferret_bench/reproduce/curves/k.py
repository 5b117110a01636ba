"""Convergence and generalisation under varying K (the paper's figure 3)."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import BYTES_UP, EVAL_LOSS, ROUGE_L, TRAIN_LOSS
from ferret_bench.reproduce.reruns.study import Panel, Study, Variant

K0 = 2048
"""The paper's 2K₀ exchanges 7.8·10³ numbers per round, up and down: about 4,096 coordinates each way."""

STUDY = Study(
    title="Varying K",
    lead="K₀ = 2,048 coordinates, so that 2K₀ is about what the paper's cost table counts.",
    rows=("ferret_paper",),
    datasets=("natural_instructions",),
    quantities=(EVAL_LOSS, ROUGE_L, BYTES_UP),
    panels=(Panel("Convergence", TRAIN_LOSS), Panel("Generalisation", EVAL_LOSS), Panel("Generalisation", ROUGE_L)),
    parts={"evaluation": {"every": 1}},
    variants={
        "ferret": {f"{times}K0": Variant(f"K = {times}K₀", {"algorithm": {"K": times * K0}}) for times in (1, 2, 4, 8)}
    },
    seeds=1,
)
