"""Rounds that Ferret, FedKSeed and FedAvg need to converge (the paper's figure 2)."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import BYTES_UP, CONVERGED, EVAL_LOSS, ROUGE_L, TRAIN_LOSS
from ferret_bench.reproduce.reruns.study import Panel, Study

STUDY = Study(
    title="Rounds to converge",
    lead="Converged is the first round whose evaluation loss is within 5 % of the way from the base model's to the "
    "run's best.",
    rows=("ferret", "fedkseed", "fedavg"),
    datasets=("natural_instructions",),
    quantities=(CONVERGED, EVAL_LOSS, ROUGE_L, BYTES_UP),
    panels=(Panel("Evaluation", EVAL_LOSS), Panel("Training", TRAIN_LOSS)),
    parts={"evaluation": {"every": 1}},
    seeds=1,
)
