"""Loss with K allocated by the length of the update alone, and by the curvature of the loss too, at three budgets."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import BYTES_UP, EVAL_LOSS
from ferret_bench.reproduce.reruns.study import AT_THE_END, Panel, Study, Variant

BUDGETS = {"128 B": 1024, "1 kB": 8192, "8 kB": 65_536}
"""One-bit coordinates that fill these bytes."""
RULES = "norm", "curvature"


def _of(budget: str, K: int, rule: str) -> Variant:
    return Variant(f"{budget}, {rule}", {"algorithm": {"K": K, "allocation": rule}})


STUDY = Study(
    title="Coordinates where the loss is steep",
    lead="The same number of one-bit coordinates, split over the blocks by the length of their updates, and by that "
    "and the curvature of the loss. The same rounds and training examples for all.",
    rows=("ferret",),
    datasets=("dolly", "gsm8k"),
    quantities=(BYTES_UP, EVAL_LOSS),
    panels=(Panel("Loss by bytes up", EVAL_LOSS, BYTES_UP, joined=False),),
    parts={"rounds": 4, "prompt": {"max_tokens": 256}, "evaluation": AT_THE_END},
    variants={"ferret": {f"{K}-{rule}": _of(budget, K, rule) for budget, K in BUDGETS.items() for rule in RULES}},
    seeds=3,
)
