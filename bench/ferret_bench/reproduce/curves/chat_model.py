"""A pretrained chat model: loss and generated answers against bytes, of every kind of method."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import BYTES_BOTH, BYTES_UP, EVAL_LOSS, ROUGE_L
from ferret_bench.reproduce.reruns.study import AT_THE_END, Panel, Study, Variant
from ferret_core.protocol.formatting import size

BUDGETS = (8000, 64_000, 250_000)

EVERY = {str(budget): Variant(size(budget), {"algorithm": {"bytes_per_round": budget}}) for budget in BUDGETS}

STUDY = Study(
    title="A chat model",
    lead="Loss and answers after the last round, with the model's own chat template. The same rounds and training "
    "examples for all, and as many trials on the validation split; ± is a 95 % interval over seeds, and differences "
    "to FedAvg are taken seed by seed: bold where zero lies outside the interval.",
    rows=("fedavg", "fedit", "fedkseed", "fedmezo", "ferret_paper", "ferret", "topk", "sparseloco", "drive"),
    datasets=("gsm8k", "dolly", "codealpaca", "natural_instructions"),
    quantities=(BYTES_UP, BYTES_BOTH, EVAL_LOSS, ROUGE_L),
    panels=(
        Panel("Loss by bytes up", EVAL_LOSS, BYTES_UP, logarithmic=True),
        Panel("Answers by bytes up", ROUGE_L, BYTES_UP, logarithmic=True),
    ),
    parts={
        "rounds": 8,
        "prompt": {"template": "chat", "max_tokens": 512},
        "evaluation": {**AT_THE_END, "batch_size": 8},
    },
    reference="fedavg",
    variants={"ferret": EVERY, "topk": EVERY, "sparseloco": EVERY},
    seeds=3,
    candidates="pretrained.toml",
)
