"""Rouge-L of every algorithm on Natural Instructions and Dolly-15K (the paper's table 2)."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import BYTES_UP, EVAL_LOSS, ROUGE_L
from ferret_bench.reproduce.reruns.study import AT_THE_END, Study

STUDY = Study(
    title="Natural Instructions and Dolly-15K",
    lead="Rouge-L and loss on held-out tasks after the last round, every algorithm under the same federation.",
    rows=(
        *("fedptuning", "fedprompt", "fedit_sgd", "fedit"),
        *("fedzo", "fedmezo", "fedkseed", "fedkseed_pro", "fedavg"),
        *("ferret_paper", "ferret"),
    ),
    datasets=("natural_instructions", "dolly"),
    quantities=(ROUGE_L, EVAL_LOSS, BYTES_UP),
    parts={"evaluation": AT_THE_END},
)
