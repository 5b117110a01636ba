"""Every table and figure that needs training, by name: the paper's own and others.

A study is runs: rows, columns, quantities, and panels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ferret_bench.reproduce.reruns.quantity import (
    AGGREGATE,
    BYTES_BOTH,
    BYTES_DOWN,
    BYTES_UP,
    CONVERGED,
    EVAL_LOSS,
    EXACT_MATCH,
    EXPECTED_NOISE,
    FORGETTING,
    LOCAL,
    LOSS_LEFT,
    MEASURED_NOISE,
    OVERALL,
    PARAMETERS,
    PASSES,
    PEAK_DEVICE,
    PEAK_MEMORY,
    ROUGE_L,
    ROUGE_L_STANDARD,
    TOTAL_UP,
    TRAIN_LOSS,
    Quantity,
)
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import size
from ferret_core.protocol.spec_file import Tree

AT_THE_END: Tree = {"every": 1_000_000}
"""Evaluates only the base model and the last round, which are always evaluated."""


class Variant(NamedTuple):
    """A variant of a row: its label, and its part of a specification."""

    label: str
    part: Tree


class Panel(NamedTuple):
    """One set of axes: ``y`` against the round, or against another quantity of the whole run.

    ``joined``: a line connects the variants of a row, as they differ in one thing alone.
    """

    title: str
    y: Quantity
    x: Quantity | None = None
    logarithmic: bool = False
    joined: bool = True


@dataclass(frozen=True)
class Study:
    """``rows`` are names in ``rows.toml``. A row with an algorithm in ``variants`` appears once per variant.

    The variant's part of a specification overrides it; ``parts`` overrides all. A table has no panels, and so no
    picture.
    """

    title: str
    lead: str
    rows: tuple[str, ...]
    datasets: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    panels: tuple[Panel, ...] = ()
    parts: Tree = field(default_factory=dict[str, Any])
    variants: Mapping[str, Mapping[str, Variant]] = field(default_factory=dict[str, Mapping[str, Variant]])
    seeds: int = 4
    reference: str | None = None
    """The row that all others are compared with, seed by seed: its page has the differences with their intervals."""
    forgetting: bool = False
    """True to measure the loss on the study's other datasets too, before the first round and after the last, and the
    loss on each example after the last. In between no answers are generated."""
    candidates: str = "candidates.toml"
    """The file of the candidates of `ferret dev paper tune` for every row, next to the module that reads it."""


Kind = Literal["table", "figure"]


def names(kind: Kind) -> list[str]:
    return sorted(STUDIES[kind])


def study(kind: Kind, name: str) -> Study:
    """Returns the table or figure with this name. ``request.invalid`` lists the existing names."""
    if name not in STUDIES[kind]:
        raise _unknown(name, names(kind))
    return STUDIES[kind][name]


def kind_of(name: str) -> Kind:
    """Returns the kind of this study, table or figure. ``request.invalid`` lists the existing names."""
    for kind, studies in STUDIES.items():
        if name in studies:
            return kind
    raise _unknown(name, [name for kind in STUDIES for name in names(kind)])


def _unknown(name: str, known: list[str]) -> FerretError:
    return FerretError.of_field("request.invalid", "NAME", name, f"unknown; choose one of {', '.join(known)}")


def _with(label: str, **options: Any) -> Variant:
    """A variant of an algorithm by its options."""
    return Variant(label, {"algorithm": options})


def _within(*budgets: int) -> dict[str, Variant]:
    """A variant for each budget in bytes per round."""
    return {str(budget): _with(size(budget), bytes_per_round=budget) for budget in budgets}


def _adam(rate: float) -> Tree:
    return {"optimizer": "adam", "learning_rate": rate}


EVERY_ROUND: Tree = {"evaluation": {"every": 1}}
CURVES = (
    Panel("Convergence", TRAIN_LOSS),
    Panel("Generalisation", EVAL_LOSS),
    Panel("Generalisation", ROUGE_L),
)

TABLES = {
    # The paper's tables 3 and 9.
    "codealpaca_gsm8k": Study(
        title="CodeAlpaca and GSM8K",
        lead="Rouge-L and loss on code and on grade-school mathematics after the last round; exact match counts "
        "answers.",
        rows=("fedit", "fedzo", "fedkseed", "fedavg", "ferret_paper", "ferret"),
        datasets=("codealpaca", "gsm8k"),
        quantities=(ROUGE_L, EXACT_MATCH, EVAL_LOSS, BYTES_UP),
        parts={"evaluation": AT_THE_END},
    ),
    # The paper's tables 4, 5 and 10, on a model of any shape.
    "cost": Study(
        title="Cost of a round",
        lead="Computation as the paper counts it, one participant's local update with its projection plus the global "
        "aggregation; communication as the paper counts it, in numbers, and as measured, in bytes per participant. "
        "Medians of the rounds after the first. Steps are of one sequence, as in the paper's own account.",
        rows=("fedzo", "fedkseed", "fedavg", "ferret_paper", "ferret"),
        datasets=("natural_instructions",),
        quantities=(LOCAL, AGGREGATE, OVERALL, PARAMETERS, BYTES_UP, BYTES_DOWN),
        parts={
            "rounds": 3,
            "evaluation": {**AT_THE_END, "examples": 1, "generate_examples": 0},
            "algorithm": {"local": {"batch_size": 1, "accumulation": 1}},
        },
        seeds=1,
    ),
    # The paper's table 6.
    "memory": Study(
        title="Peak memory",
        lead="The most memory that a participant's training takes at once, on the GPU where there is one and on the "
        "host.",
        rows=("fedavg", "fedkseed", "ferret_paper", "ferret"),
        datasets=("natural_instructions",),
        quantities=(PEAK_DEVICE, PEAK_MEMORY),
        parts={"rounds": 2, "evaluation": {**AT_THE_END, "examples": 1, "generate_examples": 0}},
        seeds=1,
    ),
    # The paper's table 2.
    "ni_dolly": Study(
        title="Natural Instructions and Dolly-15K",
        lead="Rouge-L and loss on held-out tasks after the last round, every algorithm under the same federation.",
        rows=(
            *("fedptuning", "fedprompt", "fedit_sgd", "fedit"),
            *("fedzo", "fedmezo", "fedkseed", "fedkseed_pro", "fedavg"),
            *("ferret_paper", "ferret"),
        ),
        datasets=("natural_instructions", "dolly"),
        quantities=(ROUGE_L, EVAL_LOSS, BYTES_UP),
        parts={"evaluation": AT_THE_END},
    ),
    # The paper's table 1 and figure 1.
    "overview": Study(
        title="Scalability at a glance",
        lead="Per round: forward passes of one participant (a backward pass counts as two), seconds of its local "
        "update and the global aggregation, numbers that travel as the paper counts them, bytes as measured; then the "
        "rounds to converge and the score after the last.",
        rows=("fedzo", "fedkseed", "fedavg", "ferret_paper", "ferret"),
        datasets=("natural_instructions",),
        quantities=(PASSES, OVERALL, PARAMETERS, BYTES_BOTH, CONVERGED, EVAL_LOSS, ROUGE_L),
        parts=EVERY_ROUND,
        seeds=1,
    ),
    # Training in fp32, in bf16 with fp32 weights, and in bf16 alone.
    "precision": Study(
        title="Training in half precision",
        lead="The same training in fp32, in bf16 with fp32 weights, and in bf16 alone. The noise is proportional to "
        "the norm of the first round's contributions. A contribution of twice the typical norm, which the service "
        "would clip, fails its run. ± is a 95 % interval over seeds, and differences are taken seed by seed: bold "
        "where zero lies outside the interval.",
        rows=("ferret",),
        datasets=("gsm8k", "dolly"),
        quantities=(EVAL_LOSS, MEASURED_NOISE, LOCAL),
        parts={
            "algorithm": {"local": {"accumulation": 1}},
            "robust": {"clip_factor": 2.0, "reject_factor": 2.0},
            "evaluation": {**AT_THE_END, "generate_examples": 0},
        },
        reference="ferret-float32",
        variants={
            "ferret": {
                "float32": _with("fp32", local={"precision": "float32"}),
                "bfloat16": _with("bf16, fp32 weights", local={"precision": "bfloat16"}),
                "pure_bfloat16": Variant(
                    "bf16 alone",
                    {
                        "model": {"dtype": "bfloat16"},
                        "algorithm": {"local": {"precision": "pure_bfloat16", "optimizer_in_backward": True}},
                    },
                ),
            }
        },
        seeds=3,
    ),
}

# The paper's figure 4.
ALLOCATION = Study(
    title="Varying allocation of K",
    lead="The same K split over the blocks by the norm of their updates (the paper's experiments), by its "
    "proposition 2, by the least mean squared error, equally, and by size.",
    rows=("ferret_paper",),
    datasets=("natural_instructions",),
    quantities=(EVAL_LOSS, ROUGE_L),
    panels=CURVES,
    parts=EVERY_ROUND,
    variants={
        "ferret": {
            "norm": _with("K_l ∝ ‖Δ_l‖", allocation="norm"),
            "theorem": _with("K_l ∝ √(‖Δ_l‖/ρ_l)", allocation="theorem"),
            "optimal": _with("K_l ∝ ‖Δ_l‖√d_l", allocation="optimal"),
            "uniform": _with("K_l equal", allocation="uniform"),
            "fixed": _with("K_l ∝ d_l", allocation="fixed"),
        }
    },
    seeds=1,
)

# The paper's figure 5: convergence, generalisation, and the time of projection.
BLOCKS = Study(
    title="Varying L",
    lead="Equal blocks, one block per tensor, and the blocks of the published code. The local update's time includes "
    "the projection.",
    rows=("ferret_paper",),
    datasets=("natural_instructions",),
    quantities=(EVAL_LOSS, ROUGE_L, LOCAL),
    panels=(Panel("Convergence", TRAIN_LOSS), Panel("Generalisation", EVAL_LOSS), Panel("Local update", LOCAL)),
    parts=EVERY_ROUND,
    variants={
        "ferret": {
            **{f"L{count}": _with(f"L = {count}", blocks=count) for count in (1, 8, 64, 194)},
            "tensor": _with("one per tensor", blocks="tensor"),
            "grouped": _with("as published", blocks="grouped"),
        }
    },
    seeds=1,
)

COORDINATES = Study(
    title="The largest coordinates",
    lead="Every one-bit coordinate, or the largest of many by place and sign, with the same budget. Losses are on "
    "the validation split. The same rounds and training examples for both; ± is a 95 % interval over seeds, and "
    "differences are taken seed by seed: bold where zero lies outside the interval.",
    rows=("ferret",),
    datasets=("gsm8k", "dolly"),
    quantities=(BYTES_UP, EVAL_LOSS),
    panels=(Panel("Loss by bytes up", EVAL_LOSS, BYTES_UP, joined=False),),
    parts={
        "rounds": 4,
        "participants": {"simulated": 3, "fraction": 1.0},
        "evaluation": {**AT_THE_END, "split": "validation", "generate_examples": 0},
    },
    reference="ferret-sign",
    variants={
        "ferret": {
            kind: _with(kind, bytes_per_round=8000, basis="G", coordinates=kind) for kind in ("sign", "sparse_sign")
        }
    },
    seeds=8,
)


def _worked(steps: int, rounds: int) -> Variant:
    return Variant(f"{steps} steps, {rounds} rounds", {"algorithm": {"local": {"steps": steps}}, "rounds": rounds})


# The same local work in fewer rounds, and more local work in the same rounds.
LOCAL_WORK = Study(
    title="Local work at equal bytes",
    lead="Local steps of two sequences at 8 kB a round: 60 steps in 12, 6 and 3 rounds, and 120 steps in 12. "
    "Each row has its best of three rates on the validation split. ± is a 95 % interval over seeds, and "
    "differences are taken seed by seed: bold where zero lies outside the interval.",
    rows=("ferret",),
    datasets=("gsm8k", "dolly"),
    quantities=(TOTAL_UP, EVAL_LOSS),
    panels=(Panel("Loss by bytes in all", EVAL_LOSS, TOTAL_UP, joined=False),),
    parts={"evaluation": {**AT_THE_END, "generate_examples": 0}},
    reference="ferret-5x12",
    variants={
        "ferret": {
            f"{steps}x{rounds}": _worked(steps, rounds) for steps, rounds in ((5, 12), (10, 6), (20, 3), (10, 12))
        }
    },
    seeds=3,
    candidates="rates.toml",
)

CHAT_BUDGETS = _within(8000, 64_000, 250_000)
CHAT_MODEL = Study(
    title="A chat model",
    lead="Loss and answers after the last round, with the model's own chat template. The same rounds and training "
    "examples for all, and rates from trials on the validation split; ± is a 95 % interval over seeds, of the loss "
    "over seeds and test examples, and differences to FedAvg are taken seed by seed: bold where zero lies outside the "
    "interval.",
    rows=("fedavg", "fedit", "fedkseed", "fedmezo", "ferret_paper", "ferret", "topk", "sparseloco", "drive"),
    datasets=("gsm8k", "dolly", "codealpaca", "natural_instructions"),
    quantities=(BYTES_UP, BYTES_BOTH, EVAL_LOSS, ROUGE_L, ROUGE_L_STANDARD, EXACT_MATCH, FORGETTING),
    panels=(Panel("Loss by bytes up", EVAL_LOSS, BYTES_UP, logarithmic=True),),
    parts={
        "rounds": 8,
        "prompt": {"template": "chat", "max_tokens": 512},
        "evaluation": {"every": 1, "batch_size": 8},
    },
    reference="fedavg",
    forgetting=True,
    variants={
        "ferret": {
            # The largest coordinates, Ferret's default for models of this size.
            **{
                f"sparse-{budget}": _with(size(budget), bytes_per_round=budget, basis="G", coordinates="sparse_sign")
                for budget in (8000, 64_000)
            },
            **{name: way._replace(label=f"signs, {way.label}") for name, way in CHAT_BUDGETS.items()},
        },
        "topk": CHAT_BUDGETS,
        "sparseloco": CHAT_BUDGETS,
    },
    seeds=3,
    candidates="pretrained.toml",
)

# K allocated by the length of the update alone, and by the curvature of the loss too; one-bit coordinates that fill
# the bytes of each budget.
CURVATURE = Study(
    title="Coordinates where the loss is steep",
    lead="The same number of one-bit coordinates, split over the blocks by the length of their updates, and by that "
    "and the curvature of the loss. The same rounds and training examples for all.",
    rows=("ferret",),
    datasets=("dolly", "gsm8k"),
    quantities=(BYTES_UP, EVAL_LOSS),
    panels=(Panel("Loss by bytes up", EVAL_LOSS, BYTES_UP, joined=False),),
    parts={"rounds": 4, "prompt": {"max_tokens": 256}, "evaluation": AT_THE_END},
    variants={
        "ferret": {
            f"{K}-{rule}": _with(f"{budget}, {rule}", K=K, allocation=rule)
            for budget, K in {"128 B": 1024, "1 kB": 8192, "8 kB": 65_536}.items()
            for rule in ("norm", "curvature")
        }
    },
    seeds=3,
)

BUDGETS = (1000, 7400, 64_000, 250_000)
"""Budgets in two of three bands: up to 10 kB, and from there to 1 MB.

The third band, 1 to 50 MB of a model of 10⁹ weights, is for methods with bytes that grow with the model's d weights:
0.001 to 0.05 bytes a weight, which on stories3M are 7,400 (2.4 MB of 10⁹ weights) and 64,000 (20 MB).
"""
PER_CHUNK = BUDGETS[1:]
"""Budgets for methods with at least one entry of every chunk of 4,096: 0.0004 to 0.0007 bytes a weight."""
SPARSE = {"coordinates": "sparse_sign", "basis": "H", "bytes_per_round": BUDGETS[1]}

# Every algorithm, and those with a budget at several, from a seed to the whole model.
FRONTIER = Study(
    title="What a byte buys",
    lead="Loss after the last round against the bytes that one participant sends per round, sends and receives, and "
    "against its computation. The same rounds and training examples for all; ± is a 95 % interval over seeds, and "
    "differences to FedAvg are taken seed by seed: bold where zero lies outside the interval.",
    rows=(
        *("fedkseed", "fedkseed_pro", "fedprompt", "fedptuning", "fedit", "fedit_sgd"),
        *("fed_sb", "ferret", "fetchsgd", "powersgd", "topk", "sparseloco", "demo"),
        *("signsgd", "signsgd_ef", "drive", "qsgd", "fedzo", "fedmezo", "fedprox", "scaffold"),
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
            **_within(*BUDGETS),
            "sparse-7400": _with(f"sparse, {size(BUDGETS[1])}", **SPARSE),
            "curved-7400": _with(f"sparse, by curvature, {size(BUDGETS[1])}", **SPARSE, allocation="curvature"),
        },
        **dict.fromkeys(("fetchsgd", "topk", "fed_sb"), _within(*BUDGETS)),
        **dict.fromkeys(("sparseloco", "demo"), _within(*PER_CHUNK)),
        "powersgd": {f"r{rank}": _with(f"rank {rank}", rank=rank) for rank in (1, 4, 16)},
        "qsgd": {f"s{levels}": _with(f"s = {levels}", levels=levels) for levels in (1, 7)},
    },
)


def _stepped(step: str, rate: float) -> Variant:
    # 128 bytes do not hold a scale for every tensor. The algorithm's own guard would refuse the effect to be shown.
    local = {"optimizer": "normalized", "learning_rate": rate}
    algorithm = {"bytes_per_round": 128, "blocks": 8, "refuse_noisy_rounds": False, "local": local}
    return Variant(f"{rate:g}, {step}", {"algorithm": algorithm, "server": {"step_guard": step == "guard"}})


# At 128 bytes a round noise is most of an update.
GUARD = Study(
    title="The step guard at 128 bytes a round",
    lead="One-bit coordinates in 128 bytes, at local rates a hundredfold apart, each round taken whole or "
    "halved by the step guard as long as it would raise the loss on development sequences too far. Loss "
    "left is the loss after the last round over the base model's: above 1 the model was made worse.",
    rows=("ferret",),
    datasets=("gsm8k", "dolly"),
    quantities=(BYTES_UP, EVAL_LOSS, LOSS_LEFT),
    panels=(Panel("Loss by round", EVAL_LOSS),),
    parts={"rounds": 12, "evaluation": {"every": 1, "generate_examples": 0}},
    variants={
        "ferret": {
            f"{step}-{rate:g}": _stepped(step, rate)
            for step in ("guard", "fixed")
            for rate in (0.005, 0.015, 0.05, 0.15, 0.5)
        }
    },
)

K0 = 2048
"""The paper's 2K₀ exchanges 7.8·10³ numbers per round, up and down: about 4,096 coordinates each way."""

# The paper's figure 3.
VARYING_K = Study(
    title="Varying K",
    lead="K₀ = 2,048 coordinates, so that 2K₀ is about what the paper's cost table counts.",
    rows=("ferret_paper",),
    datasets=("natural_instructions",),
    quantities=(EVAL_LOSS, ROUGE_L, BYTES_UP),
    panels=CURVES,
    parts=EVERY_ROUND,
    variants={"ferret": {f"{times}K0": _with(f"K = {times}K₀", K=times * K0) for times in (1, 2, 4, 8)}},
    seeds=1,
)

# The paper's figure 9.
OPTIMIZER = Study(
    title="Varying local optimizer",
    lead="The paper prints no rates for this figure. Each optimizer has two here: SGD the row's own and 1e-3; Adam "
    "2e-5, at which the reconstruction adds about as much noise to stories3M as with SGD at 3e-4, and 6e-5. "
    "Set others with --set ferret_paper-adam.algorithm.local.learning_rate=….",
    rows=("ferret_paper",),
    datasets=("natural_instructions",),
    quantities=(EVAL_LOSS, ROUGE_L),
    panels=CURVES,
    parts=EVERY_ROUND,
    variants={
        "ferret": {
            "adam": _with("Adam 2e-5", local=_adam(2e-5)),
            "adam-high": _with("Adam 6e-5", local=_adam(6e-5)),
            "sgd": _with("SGD", local={"optimizer": "sgd"}),
            "sgd-high": _with("SGD 1e-3", local={"optimizer": "sgd", "learning_rate": 1e-3}),
        }
    },
    seeds=1,
)

# The paper's figure 2.
ROUNDS = Study(
    title="Rounds to converge",
    lead="Converged is the first round whose evaluation loss is within 5 % of the way from the base model's to the "
    "run's best.",
    rows=("ferret", "fedkseed", "fedavg"),
    datasets=("natural_instructions",),
    quantities=(CONVERGED, EVAL_LOSS, ROUGE_L, BYTES_UP),
    panels=(Panel("Evaluation", EVAL_LOSS), Panel("Training", TRAIN_LOSS)),
    parts=EVERY_ROUND,
    seeds=1,
)


def _unguarded(label: str, **local: Any) -> Variant:
    return _with(label, refuse_noisy_rounds=False, local=local)


# The effect of projection noise on models of several sizes, and the guard's refusals.
SIZE = Study(
    title="Noise relative to the weights, at 8 kB",
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
        "evaluation": {"every": 1, "generate_examples": 0},
    },
    variants={
        "ferret": {
            "default": _unguarded("default", optimizer="normalized"),
            "normalized": _unguarded("normalized 0.15", optimizer="normalized", learning_rate=0.15),
            "sgd": _unguarded("SGD 0.1, clipped", optimizer="sgd", learning_rate=0.1, clip_norm=1.0),
            "adam-low": _unguarded("Adam 1e-4", **_adam(1e-4)),
            "adam-middle": _unguarded("Adam 3e-4", **_adam(3e-4)),
            "adam-high": _unguarded("Adam 1e-3", **_adam(1e-3)),
            "guarded": _with("Adam 1e-3, guarded", local=_adam(1e-3)),
        },
        "fedavg": {"adam": _with("Adam 3e-4", local=_adam(3e-4))},
    },
    seeds=2,
)

SIGN_BYTES = 7400
SPARSE_BYTES = round(SIGN_BYTES / 1.4)
SPARSE_SIGNS = Study(
    title="Sparse one-bit coordinates",
    lead="Every coordinate as a bit, and of many more coordinates the largest, by place and sign, with a budget "
    "1.4 times smaller. The same rounds and training examples for all; ± is a 95 % interval over seeds.",
    rows=("ferret",),
    datasets=("dolly", "gsm8k"),
    quantities=(BYTES_UP, EVAL_LOSS),
    panels=(Panel("Loss by bytes up", EVAL_LOSS, BYTES_UP, joined=False),),
    parts={"rounds": 8, "evaluation": AT_THE_END},
    reference="ferret-sign",
    variants={
        "ferret": {
            "sign": _with("sign, G", coordinates="sign", basis="G", bytes_per_round=SIGN_BYTES),
            **{
                f"sparse-{basis}": _with(
                    f"sparse_sign, {basis}", coordinates="sparse_sign", basis=basis, bytes_per_round=SPARSE_BYTES
                )
                for basis in "HG"
            },
        }
    },
)


def _summed(label: str, K: int, aggregation: str = "masked") -> Variant:
    algorithm = {"K": K, "coordinates": "sign", "seeds": "shared", "allocation": "fixed", "refuse_noisy_rounds": False}
    return Variant(label, {"algorithm": algorithm, "secure": {"aggregation": aggregation}})


# Ten participants need four bits for a coordinate of a sum, in place of one.
SUMS = Study(
    title="The price of secure sums",
    lead="One-bit coordinates of ten participants: on own seeds in 8 kB, on a shared seed, and summed under masks. The "
    "same rounds and training examples for all; ± is a 95 % interval over seeds, and differences are taken seed by "
    "seed.",
    rows=("ferret",),
    datasets=("dolly", "gsm8k"),
    quantities=(BYTES_UP, EVAL_LOSS),
    panels=(Panel("Loss by bytes up", EVAL_LOSS, BYTES_UP, joined=False),),
    parts={
        "rounds": 12,
        "prompt": {"max_tokens": 256},
        "participants": {"simulated": 10, "fraction": 1.0},
        "evaluation": {**AT_THE_END, "generate_examples": 0},
    },
    reference="ferret-own",
    variants={
        "ferret": {
            "own": _with("own seeds, K = 65,536", K=65_536, coordinates="sign"),
            "shared": _summed("shared seed, K = 16,384", 16_384, "none"),
            "masked": _summed("secure sum, K = 16,384", 16_384),
            "masked-64": _summed("secure sum, K = 131,072", 131_072),
        }
    },
    seeds=3,
)

FIGURES = {
    "allocation": ALLOCATION,
    "blocks": BLOCKS,
    "chat_model": CHAT_MODEL,
    "coordinates": COORDINATES,
    "curvature": CURVATURE,
    "frontier": FRONTIER,
    "guard": GUARD,
    "k": VARYING_K,
    "local_work": LOCAL_WORK,
    "optimizer": OPTIMIZER,
    "rounds": ROUNDS,
    "size": SIZE,
    "sparse": SPARSE_SIGNS,
    "sums": SUMS,
}

STUDIES: Mapping[Kind, Mapping[str, Study]] = {"table": TABLES, "figure": FIGURES}
