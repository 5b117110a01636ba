"""Loss with and without error feedback, from an eighth of a coordinate for each weight to a half."""

from __future__ import annotations

from ferret_bench.paper.reruns.quantity import BYTES_UP, EVAL_LOSS
from ferret_bench.paper.reruns.study import AT_THE_END, Panel, Study, Variant

ELEMENTS = 8, 4, 2
"""Of the model for each coordinate."""
D = 260_032
"""Of stories260K; K is meant for it."""


def _of(elements: int, feedback: bool) -> Variant:
    options = {"K": D // elements, "basis": "H", "error_feedback": feedback}
    return Variant(f"K = d/{elements}{', error feedback' if feedback else ''}", {"algorithm": options})


STUDY = Study(
    title="Error feedback in Ferret",
    lead="One-bit coordinates on basis H, unbiased and forgotten, or nearest to the update with what is left kept for "
    "the next round. The same rounds and training examples for all; ± is a 95 % interval over seeds.",
    rows=("ferret",),
    datasets=("gsm8k",),
    quantities=(BYTES_UP, EVAL_LOSS),
    panels=(Panel("Loss by bytes up", EVAL_LOSS, BYTES_UP, joined=False),),
    parts={"rounds": 12, "evaluation": AT_THE_END},
    variants={
        "ferret": {
            f"d{elements}{'-ef' if feedback else ''}": _of(elements, feedback)
            for elements in ELEMENTS
            for feedback in (False, True)
        }
    },
)
