"""The benefit of the step guard at 128 bytes a round, where noise is most of an update, at rates a hundredfold
apart.
"""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import BYTES_UP, EVAL_LOSS, LOSS_LEFT
from ferret_bench.reproduce.reruns.study import Panel, Study, Variant

BYTES = 128
RATES = 0.005, 0.015, 0.05, 0.15, 0.5


def _of(step: str, rate: float) -> Variant:
    local = {"optimizer": "normalized", "learning_rate": rate}
    # 128 bytes do not hold a scale for every tensor. The algorithm's own guard would refuse the effect to be shown.
    algorithm = {"bytes_per_round": BYTES, "blocks": 8, "guard": False, "local": local}
    return Variant(f"{rate:g}, {step}", {"algorithm": algorithm, "server": {"step": step}})


STUDY = Study(
    title="The step guard at 128 bytes a round",
    lead="One-bit coordinates in 128 bytes, at local rates a hundredfold apart, each round taken whole or "
    "halved by the step guard as long as it would raise the loss on development sequences too far. Loss "
    "left is the loss after the last round over the base model's: above 1 the model was made worse. "
    "± is a 95 % interval over seeds.",
    rows=("ferret",),
    datasets=("gsm8k", "dolly"),
    quantities=(BYTES_UP, EVAL_LOSS, LOSS_LEFT),
    panels=(Panel("Loss by round", EVAL_LOSS),),
    parts={"rounds": 12, "evaluation": {"every": 1, "generate": 0}},
    variants={"ferret": {f"{step}-{rate:g}": _of(step, rate) for step in ("guard", "fixed") for rate in RATES}},
)
