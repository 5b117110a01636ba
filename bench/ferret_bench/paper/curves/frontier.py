"""Quality against bytes: every algorithm, and those with a budget at several, from a seed to the whole model."""

from __future__ import annotations

from ferret_bench.paper.reruns.quantity import BYTES_DOWN, BYTES_UP, EVAL_LOSS, ROUGE_L
from ferret_bench.paper.reruns.study import AT_THE_END, Panel, Study, Variant
from ferret_cli.output import size

BUDGETS = (1000, 7400, 64_000, 250_000)


def _of(budget: int) -> Variant:
    return Variant(size(budget), {"algorithm": {"bytes_per_round": budget}})


STUDY = Study(
    title="What a byte buys",
    lead="Loss and Rouge-L after the last round against the bytes that one participant sends per round. The same local "
    "training and the same number of rounds for all.",
    rows=(
        *("fedkseed", "fedkseed_pro", "fedprompt", "fedptuning", "fedit", "fedit_sgd"),
        *("ferret", "fetchsgd", "powersgd", "topk", "signsgd"),
        *("fedzo", "fedmezo", "fedprox", "scaffold", "fedavg"),
    ),
    datasets=("natural_instructions", "dolly", "codealpaca", "gsm8k"),
    quantities=(BYTES_UP, BYTES_DOWN, EVAL_LOSS, ROUGE_L),
    panels=(
        Panel("Loss", EVAL_LOSS, BYTES_UP, logarithmic=True),
        Panel("Score", ROUGE_L, BYTES_UP, logarithmic=True),
    ),
    parts={"rounds": 12, "evaluation": AT_THE_END},
    variants={
        **{name: {str(budget): _of(budget) for budget in BUDGETS} for name in ("ferret", "fetchsgd", "topk")},
        "powersgd": {f"r{rank}": Variant(f"rank {rank}", {"algorithm": {"rank": rank}}) for rank in (1, 4, 16)},
    },
)
