"""Convergence and generalisation under varying local optimizers (the paper's figure 9)."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import EVAL_LOSS, ROUGE_L, TRAIN_LOSS
from ferret_bench.reproduce.reruns.study import Panel, Study, Variant
from ferret_core.protocol.spec_file import Tree


def _variant(label: str, local: Tree) -> Variant:
    return Variant(label, {"algorithm": {"local": local}})


STUDY = Study(
    title="Varying local optimizer",
    lead="The paper prints no rates for this figure. Each optimizer has two here: SGD the row's own and 1e-3; Adam "
    "2e-5, at which the reconstruction adds about as much noise to stories3M as with SGD at 3e-4, and 6e-5. "
    "Set others with --set ferret_paper-adam.algorithm.local.learning_rate=….",
    rows=("ferret_paper",),
    datasets=("natural_instructions",),
    quantities=(EVAL_LOSS, ROUGE_L),
    panels=(Panel("Convergence", TRAIN_LOSS), Panel("Generalisation", EVAL_LOSS), Panel("Generalisation", ROUGE_L)),
    parts={"evaluation": {"every": 1}},
    variants={
        "ferret": {
            "adam": _variant("Adam 2e-5", {"optimizer": "adam", "learning_rate": 2e-5}),
            "adam-high": _variant("Adam 6e-5", {"optimizer": "adam", "learning_rate": 6e-5}),
            "sgd": _variant("SGD", {"optimizer": "sgd"}),
            "sgd-high": _variant("SGD 1e-3", {"optimizer": "sgd", "learning_rate": 1e-3}),
        }
    },
    seeds=1,
)
