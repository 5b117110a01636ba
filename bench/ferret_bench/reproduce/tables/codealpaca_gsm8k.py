"""Rouge-L on CodeAlpaca and GSM8K (the paper's tables 3 and 9)."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import BYTES_UP, EVAL_LOSS, EXACT_MATCH, ROUGE_L
from ferret_bench.reproduce.reruns.study import AT_THE_END, Study

STUDY = Study(
    title="CodeAlpaca and GSM8K",
    lead="Rouge-L and loss on code and on grade-school mathematics after the last round; exact match counts answers.",
    rows=("fedit", "fedzo", "fedkseed", "fedavg", "ferret_paper", "ferret"),
    datasets=("codealpaca", "gsm8k"),
    quantities=(ROUGE_L, EXACT_MATCH, EVAL_LOSS, BYTES_UP),
    parts={"evaluation": AT_THE_END},
)
