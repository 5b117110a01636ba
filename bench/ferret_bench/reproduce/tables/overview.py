"""Computation, communication, rounds to converge and score side by side (the paper's table 1 and figure 1)."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import (
    BYTES_BOTH,
    CONVERGED,
    EVAL_LOSS,
    OVERALL,
    PARAMETERS,
    PASSES,
    ROUGE_L,
)
from ferret_bench.reproduce.reruns.study import Study

STUDY = Study(
    title="Scalability at a glance",
    lead="Per round: forward passes of one participant (a backward pass counts as two), seconds of its local update "
    "and the global aggregation, numbers that travel as the paper counts them, bytes as measured; then the rounds to "
    "converge and the score after the last.",
    rows=("fedzo", "fedkseed", "fedavg", "ferret_paper", "ferret"),
    datasets=("natural_instructions",),
    quantities=(PASSES, OVERALL, PARAMETERS, BYTES_BOTH, CONVERGED, EVAL_LOSS, ROUGE_L),
    parts={"evaluation": {"every": 1}},
    seeds=1,
)
