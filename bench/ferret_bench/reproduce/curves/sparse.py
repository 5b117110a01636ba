"""Loss of one-bit coordinates, and of sparse ones at 1.4 times fewer bytes."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import BYTES_UP, EVAL_LOSS
from ferret_bench.reproduce.reruns.study import AT_THE_END, Panel, Study, Variant

BYTES = 7400
FEWER = 1.4


def _of(kind: str, basis: str, budget: int) -> Variant:
    options = {"coordinates": kind, "basis": basis, "bytes_per_round": budget}
    return Variant(f"{kind}, {basis}", {"algorithm": options})


STUDY = Study(
    title="Sparse one-bit coordinates at 1.4 times fewer bytes",
    lead="Every coordinate as a bit, and of many more coordinates the largest, by place and sign, in 1.4 times fewer "
    "bytes. The same rounds and training examples for all; ± is a 95 % interval over seeds.",
    rows=("ferret",),
    datasets=("dolly", "gsm8k"),
    quantities=(BYTES_UP, EVAL_LOSS),
    panels=(Panel("Loss by bytes up", EVAL_LOSS, BYTES_UP, joined=False),),
    parts={"rounds": 8, "evaluation": AT_THE_END},
    reference="ferret-sign",
    variants={
        "ferret": {
            "sign": _of("sign", "G", BYTES),
            "sparse-H": _of("sparse_sign", "H", round(BYTES / FEWER)),
            "sparse-G": _of("sparse_sign", "G", round(BYTES / FEWER)),
        }
    },
)
