"""The cost of a round: the paper's tables of local update and global aggregation, on a LLaMA with random weights.

Every elementary piece of work is measured in the same run. A method's cost is the number of times it does each, as
counted in the paper's appendix. FedZO and FedKSeed take 200 local steps: two forward passes, and the random direction
drawn three times, to go there, to come back and to move. FedAvg and Ferret take 10 steps of plain gradient descent;
Ferret then projects. FedKSeed's server draws 4,096 directions; Ferret's applies each participant's coordinates under
its own seed; FedZO's and FedAvg's average whole updates. The naive way draws directions with torch, as the authors'
code does: compare its rows with each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, final

import torch
from torch import Tensor

from ferret_bench._projection.implementations import Contribution, Family, Naive, Way
from ferret_bench._projection.llama import (
    SEVEN_BILLION,
    THREE_BILLION,
    TOY,
    Shape,
    random_batches,
    random_llama,
    seconds_per_step,
)
from ferret_bench.base import Say, Table
from ferret_bench.gpu.part import Done, Found, Setup, Step
from ferret_bench.measure.bound import HOLDS, Bound, against
from ferret_bench.measure.clock import Action, Turns, in_turns
from ferret_bench.measure.memory import short_of
from ferret_cli.output import say
from ferret_core.models.parameters import trainable
from ferret_core.projection.blocks import blocks_of
from ferret_core.projection.project import norms
from ferret_core.training.config import LocalConfig

ZEROTH_ORDER_STEPS, FIRST_ORDER_STEPS, KSEED_SEEDS = 200, 10, 4096
FORWARD_PASSES, DRAWS = 2, 3
CONTRIBUTIONS = 4
MODELS_HELD = 4
"""Model copies in memory: weights, previous weights, a copy's target, and an update; or weights and gradients."""
WIDE_K, NARROW_K = 1024, 16
"""K_l of G (its cost does not depend on K), and K_l of T and the naive way (their cost grows with K)."""
BOUNDS = {
    "g_project_vs_copy": Bound("<=", 2),
    "g_apply_vs_copy": Bound("<=", 2),
    "t_project_speedup": Bound(">=", 100),
    "t_apply_speedup": Bound(">=", 100),
}
TURNS = Turns(least=3, most=9, seconds=20.0)
TOKENS = 256


def costs(
    shape: Shape, device: torch.device, dtype: torch.dtype, say: Say, turns: Turns | None = None
) -> dict[str, Any]:
    """Returns the costs, or only ``skipped``, with the reason, if memory is short.

    ``work_seconds``: of each piece; ``ratios`` and ``bounds``: G over a copy of the model, the naive way over T;
    ``methods``: the table.
    """
    if reason := short_of(MODELS_HELD * shape.elements * dtype.itemsize, device):
        return {"model": shape.name, "skipped": reason}
    say(f"{shape.name}, {shape.elements:,} parameters, on {device}")
    work, ratios = _measure(shape, device, dtype, turns or TURNS)
    return {
        "model": shape.name,
        "parameters": shape.elements,
        "dtype": str(dtype).removeprefix("torch."),
        "contributions": CONTRIBUTIONS,
        "K_per_block": {"G": WIDE_K, "T": NARROW_K, "naive": NARROW_K},
        "work_seconds": work,
        "ratios": ratios,
        "bounds": against(BOUNDS, ratios),
        "methods": _methods(work),
    }


def _measure(
    shape: Shape, device: torch.device, dtype: torch.dtype, turns: Turns
) -> tuple[dict[str, float], dict[str, float]]:
    model = random_llama(shape, device, dtype)
    batches = random_batches(shape, 1, TOKENS)
    local = LocalConfig(optimizer="sgd", learning_rate=1e-6, steps=3, batch_size=1, accumulation=1)
    step = seconds_per_step(model, batches, local)
    ids = next(batches).input_ids.to(device)
    after = {name: parameter.detach() for name, parameter in trainable(model).items()}
    before = {name: weights + 1e-2 for name, weights in after.items()}

    @torch.no_grad()
    def forward() -> None:
        model(input_ids=ids, use_cache=False)

    sides: dict[str, Action] = {"forward": forward, **_on_weights(before, after)}
    for way, K in ((Family("G"), WIDE_K), (Family("T"), NARROW_K), (Naive(), NARROW_K)):
        sides |= _of_way(way, K, before, after)
    timings = in_turns(sides, device, turns)
    ratios = {
        "g_project_vs_copy": timings.ratio("G project", "copy"),
        "g_apply_vs_copy": timings.ratio("G apply", "copy"),
        "t_project_speedup": timings.ratio("naive project", "T project"),
        "t_apply_speedup": timings.ratio("naive apply", "T apply"),
    }
    return {"step": step} | {side: timings.median(side) for side in sides}, ratios


def _on_weights(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> dict[str, Action]:
    target = {name: torch.empty_like(weights) for name, weights in after.items()}
    # One represents all: each is far larger than any cache, so reading it again moves as many bytes.
    update = {name: torch.full_like(weights, 1e-6) for name, weights in after.items()}
    generator = torch.Generator(next(iter(after.values())).device)

    def copy() -> None:
        for name, weights in after.items():
            target[name].copy_(weights)

    def direction() -> None:
        generator.manual_seed(1)
        for weights in after.values():
            drawn = torch.randn(weights.shape, generator=generator, device=weights.device, dtype=weights.dtype)
            weights.add_(drawn, alpha=1e-6)

    def average() -> None:
        for _ in range(CONTRIBUTIONS):
            for name, weights in after.items():
                weights.sub_(update[name], alpha=1 / CONTRIBUTIONS)

    return {
        "copy": copy,
        "direction": direction,
        "average": average,
        "norms": lambda: norms(before, after, blocks_of(after)),
    }


def _of_way(way: Way, K: int, before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> dict[str, Action]:
    """Returns projecting, applying one contribution, and applying all of a round."""
    blocks = blocks_of(after)
    counts = [min(K, block.size) for block in blocks]
    device = next(iter(after.values())).device
    sent = [
        Contribution(seed, [torch.randn(count, device=device) * 1e-6 for count in counts])
        for seed in range(CONTRIBUTIONS)
    ]
    return {
        f"{way.name} project": lambda: way.project(before, after, blocks, counts, 1),
        f"{way.name} apply": lambda: way.apply_(after, blocks, sent[:1]),
        f"{way.name} apply all": lambda: way.apply_(after, blocks, sent),
    }


def _methods(work: Mapping[str, float]) -> list[dict[str, Any]]:
    zeroth = ZEROTH_ORDER_STEPS * (FORWARD_PASSES * work["forward"] + DRAWS * work["direction"])
    first = FIRST_ORDER_STEPS * work["step"]
    found = {
        "FedZO, naive": (zeroth, work["average"]),
        "FedKSeed, naive": (zeroth, KSEED_SEEDS * work["direction"]),
        "FedAvg": (first, work["average"]),
    }
    for way in ("naive", "T", "G"):
        found[f"Ferret, {way}"] = first + work["norms"] + work[f"{way} project"], work[f"{way} apply all"]
    return [
        {"method": method, "local_update_s": local, "aggregation_s": server, "overall_s": local + server}
        for method, (local, server) in found.items()
    ]


METHODS = ("method", "local_update_s", "aggregation_s", "overall_s")
QUICK = Turns(2, 2)


@final
class Part:
    title = "Projection and methods"
    lead = (
        "Random weights, bf16. Every piece of work is measured in the same run; a method's cost is how often it does "
        "each, as the paper's appendix counts (tables 4, 5 and 10). Naive rows draw directions with torch, as the "
        "authors' code does: compare them with each other. FedAvg's aggregation is the sum on the GPU, without its "
        "transfer."
    )
    seconds = 420.0

    def steps(self, setup: Setup) -> Mapping[str, Step]:
        shapes = (TOY,) if setup.miniature else (THREE_BILLION, SEVEN_BILLION)
        return {shape.name: partial(_costs, shape) for shape in shapes}

    def tables(self, done: Done) -> Sequence[Table]:
        measured = {name: found for name, found in done.items() if "skipped" not in found}
        bounds = [
            [name, key, bound["value"], bound["bound"], HOLDS[bound["holds"]]]
            for name, found in measured.items()
            for key, bound in found["bounds"].items()
        ]
        methods = [
            [name, *(row[column] for column in METHODS)] for name, found in measured.items() for row in found["methods"]
        ]
        skipped = [[name, found["skipped"]] for name, found in done.items() if "skipped" in found]
        tables = [
            Table("Bounds:", ["model", "measured", "value", "bound", "holds"], bounds),
            Table("Seconds of a round:", ["model", "method", "local update", "aggregation", "overall"], methods),
        ]
        return [*tables, *([Table("Skipped:", ["model", "why"], skipped)] if skipped else [])]


def _costs(shape: Shape, setup: Setup) -> Found:
    return costs(shape, setup.device, torch.bfloat16, say, QUICK if setup.miniature else None)
