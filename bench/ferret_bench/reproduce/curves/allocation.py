"""Convergence and generalisation under varying allocation of K over the blocks (the paper's figure 4)."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import EVAL_LOSS, ROUGE_L, TRAIN_LOSS
from ferret_bench.reproduce.reruns.study import Panel, Study, Variant

RULES = {
    "norm": "K_l ∝ ‖Δ_l‖",
    "theorem": "K_l ∝ √(‖Δ_l‖/ρ_l)",
    "optimal": "K_l ∝ ‖Δ_l‖√d_l",
    "uniform": "K_l equal",
    "fixed": "K_l ∝ d_l",
}

STUDY = Study(
    title="Varying allocation of K",
    lead="The same K split over the blocks by the norm of their updates (the paper's experiments), by its "
    "proposition 2, by the least mean squared error, equally, and by size.",
    rows=("ferret_paper",),
    datasets=("natural_instructions",),
    quantities=(EVAL_LOSS, ROUGE_L),
    panels=(Panel("Convergence", TRAIN_LOSS), Panel("Generalisation", EVAL_LOSS), Panel("Generalisation", ROUGE_L)),
    parts={"evaluation": {"every": 1}},
    variants={"ferret": {rule: Variant(label, {"algorithm": {"allocation": rule}}) for rule, label in RULES.items()}},
    seeds=1,
)
