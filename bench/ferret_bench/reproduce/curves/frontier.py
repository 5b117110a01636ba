"""Quality against bytes: every algorithm, and those with a budget at several, from a seed to the whole model."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import BYTES_BOTH, BYTES_UP, EVAL_LOSS, PASSES, ROUGE_L
from ferret_bench.reproduce.reruns.study import AT_THE_END, Panel, Study, Variant
from ferret_core.protocol.formatting import size

BUDGETS = (1000, 7400, 64_000, 250_000)
"""Budgets in two of three bands: up to 10 kB, and from there to 1 MB.

The third band, 1 to 50 MB of a model of 10⁹ weights, is for methods with bytes that grow with the model's d weights:
0.001 to 0.05 bytes a weight, which on stories3M are 7,400 (2.4 MB of 10⁹ weights) and 64,000 (20 MB).
"""
SPARSE = {"coordinates": "sparse_sign", "basis": "H", "bytes_per_round": BUDGETS[1]}
PER_CHUNK = BUDGETS[1:]
"""Budgets for methods with at least one entry of every chunk of 4,096: 0.0004 to 0.0007 bytes a weight."""


def _of(budget: int) -> Variant:
    return Variant(size(budget), {"algorithm": {"bytes_per_round": budget}})


def _sparse(label: str, **more: str) -> Variant:
    return Variant(f"{label}, {size(BUDGETS[1])}", {"algorithm": {**SPARSE, **more}})


EVERY = {str(budget): _of(budget) for budget in BUDGETS}

STUDY = Study(
    title="What a byte buys",
    lead="Loss after the last round against the bytes that one participant sends per round, sends and receives, and "
    "against its computation. The same rounds and training examples for all; ± is a 95 % interval over seeds, and "
    "differences to FedAvg are taken seed by seed: bold where zero lies outside the interval.",
    rows=(
        *("fedkseed", "fedkseed_pro", "decomfl", "hiso", "fedprompt", "fedptuning", "fedit", "fedit_sgd", "ffa_lora"),
        *("fed_sb", "fed_sb_bit", "ferret", "fetchsgd", "powersgd", "topk", "sparseloco", "demo"),
        *("signsgd", "signsgd_ef", "drive", "qsgd", "fedzo", "fedmezo", "fedprox", "scaffold", "diloco", "muloco"),
        *("fedavg_adam", "fedavg"),
    ),
    datasets=("natural_instructions", "dolly", "codealpaca", "gsm8k"),
    quantities=(BYTES_UP, BYTES_BOTH, PASSES, EVAL_LOSS, ROUGE_L),
    panels=(
        Panel("Loss by bytes up", EVAL_LOSS, BYTES_UP, logarithmic=True),
        Panel("Loss by bytes both ways", EVAL_LOSS, BYTES_BOTH, logarithmic=True),
        Panel("Loss by computation", EVAL_LOSS, PASSES),
    ),
    parts={"rounds": 12, "evaluation": AT_THE_END},
    reference="fedavg",
    variants={
        "ferret": {
            **EVERY,
            "sparse-7400": _sparse("sparse"),
            "curved-7400": _sparse("sparse, by curvature", allocation="curvature"),
        },
        **dict.fromkeys(("fetchsgd", "topk", "fed_sb"), EVERY),
        **{name: {str(budget): _of(budget) for budget in PER_CHUNK} for name in ("sparseloco", "demo")},
        "fed_sb_bit": {str(budget): _of(budget) for budget in BUDGETS[:3]},
        "diloco": {"int8": Variant("int8", {"algorithm": {"coordinates": "int8"}}), "fp32": Variant("fp32", {})},
        "powersgd": {f"r{rank}": Variant(f"rank {rank}", {"algorithm": {"rank": rank}}) for rank in (1, 4, 16)},
        "qsgd": {f"s{levels}": Variant(f"s = {levels}", {"algorithm": {"levels": levels}}) for levels in (1, 7)},
    },
)
