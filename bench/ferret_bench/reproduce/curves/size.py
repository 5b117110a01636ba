"""The effect of projection noise on models of several sizes at the same bytes, and the guard's refusals."""

from __future__ import annotations

from ferret_bench.reproduce.reruns.quantity import (
    BYTES_UP,
    EVAL_LOSS,
    EXPECTED_NOISE,
    LOSS_LEFT,
    MEASURED_NOISE,
)
from ferret_bench.reproduce.reruns.study import Panel, Study, Variant
from ferret_core.protocol.spec_file import Tree


def _unguarded(label: str, local: Tree) -> Variant:
    return Variant(label, {"algorithm": {"guard": False, "local": local}})


def _adam(rate: float) -> Tree:
    return {"optimizer": "adam", "learning_rate": rate}


STUDY = Study(
    title="Noise beside the weights, at 8 kB",
    lead="One budget for models of all sizes. The noise of a round is expected from the specification (before round 1) "
    "and measured from the contributions (round 1), in percent of the weights; loss left is the loss after the last "
    "round over the base model's: above 1 the model was made worse. The guard is off but in the row that says so.",
    rows=("ferret", "fedavg"),
    datasets=("gsm8k",),
    quantities=(BYTES_UP, EXPECTED_NOISE, MEASURED_NOISE, EVAL_LOSS, LOSS_LEFT),
    panels=(Panel("Loss left by noise", LOSS_LEFT, MEASURED_NOISE, logarithmic=True, joined=False),),
    parts={
        "rounds": 8,
        "algorithm": {"local": {"steps": 5, "batch_size": 2, "accumulation": 1}},
        "evaluation": {"every": 1, "generate": 0},
    },
    variants={
        "ferret": {
            "default": _unguarded("default", {"optimizer": "normalized"}),
            "normalized": _unguarded("normalized 0.15", {"optimizer": "normalized", "learning_rate": 0.15}),
            "sgd": _unguarded("SGD 0.1, clipped", {"optimizer": "sgd", "learning_rate": 0.1, "clip_norm": 1.0}),
            "adam-low": _unguarded("Adam 1e-4", _adam(1e-4)),
            "adam-middle": _unguarded("Adam 3e-4", _adam(3e-4)),
            "adam-high": _unguarded("Adam 1e-3", _adam(1e-3)),
            "guarded": Variant("Adam 1e-3, guarded", {"algorithm": {"local": _adam(1e-3)}}),
        },
        "fedavg": {"adam": Variant("Adam 3e-4", {"algorithm": {"local": _adam(3e-4)}})},
    },
    seeds=2,
)
