"""Convergence and generalisation under varying local optimizers (the paper's figure 9)."""

from __future__ import annotations

from ferret_bench.paper.reruns.quantity import EVAL_LOSS, ROUGE_L, TRAIN_LOSS
from ferret_bench.paper.reruns.study import Panel, Study, Variant

STUDY = Study(
    title="Varying local optimizer",
    lead="The paper prints no rates for this figure: SGD's is a hundred times Adam's here, whose steps do not depend "
    "on the gradient's size. Set others with --set ferret_paper-sgd.algorithm.local.learning_rate=….",
    rows=("ferret_paper",),
    datasets=("natural_instructions",),
    quantities=(EVAL_LOSS, ROUGE_L),
    panels=(Panel("Convergence", TRAIN_LOSS), Panel("Generalisation", EVAL_LOSS), Panel("Generalisation", ROUGE_L)),
    parts={"evaluation": {"every": 1}},
    variants={
        "ferret": {
            "adam": Variant("Adam", {"algorithm": {"local": {"optimizer": "adam"}}}),
            "adamw": Variant("AdamW", {"algorithm": {"local": {"optimizer": "adamw"}}}),
            "sgd": Variant("SGD", {"algorithm": {"local": {"optimizer": "sgd", "learning_rate": 1e-2}}}),
        }
    },
    seeds=1,
)
