"""The seven ratios with a bound. The two sides of a ratio are measured in turns.

Sizes are in Mi = 2²⁰ and Ki = 2¹⁰, vectors in fp32. A time is one call over one block of d elements; project reads the
block before and after training (8 bytes per element), apply moves the weights in place.

t_speedup              naive project + apply over T's, d = 4 Mi, K = 16
g_project_vs_sum       G's project over torch.sum of one vector, d = 64 Mi, K = 64 Ki. It reads two vectors:
                       ``vs_sum_of_as_many_bytes`` is its time over the sums of both
g_apply_vs_add         G's apply of one contribution over w.add_(x), d = 64 Mi, K = 64 Ki
g_k_flat               time with K = 4 Mi over that with K = 4 Ki, less 1, d = 64 Mi: project's or apply's, the larger
g_apply10_vs_average   G's apply of 10 contributions with separate seeds, K = 64 Ki each, over averaging 10 vectors
                       and moving the weights by the mean, d = 64 Mi: the faster way that takes updates as they come.
                       Also measured: a way that reads less, but needs all whole updates in memory (see ``_averages``)
projection_share       see :func:`projection_share`
extra_memory_mb        G's project or apply, the larger, d = 256 Mi, K = 64 Ki, in 10⁶ bytes: peak of anonymous memory
                       in a fresh process, less vectors and result
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ferret_bench._projection.implementations import WEIGHT_BYTES, Family, Naive, Vectors, Way
from ferret_bench._projection.llama import Shape, random_batches, random_llama, seconds_per_step
from ferret_bench.base import Say
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.clock import Action, Timings, Turns, in_turns
from ferret_bench.measure.memory import extra_bytes, short_of
from ferret_core.models.parameters import trainable, working_copy
from ferret_core.projection import quantize
from ferret_core.projection.allocation import allocate
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import blocks_of
from ferret_core.projection.project import norms, project
from ferret_core.training.config import LocalConfig

OPERATIONS = ("project", "apply")
WARM_UP = 1 << 16


def memory_peaks(elements: int, K: int) -> dict[str, int] | None:
    """Returns the peaks by operation, or None if the system does not report them."""
    command = [sys.executable, "-m", __name__, str(elements), str(K), str(torch.get_num_threads())]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return None if None in found.values() else found


def peaks(elements: int, K: int) -> dict[str, int | None]:
    """Returns the peaks without the existing vectors and coefficients and the result. Code is compiled beforehand."""
    device, family = torch.device("cpu"), Family("G")
    small, large = Vectors.random(WARM_UP, device), Vectors.random(elements, device)
    found: dict[str, int | None] = {}
    for operation in OPERATIONS:
        small.action(family, operation, min(K, WARM_UP))()
        found[operation] = extra_bytes(large.action(family, operation, K), device)
    return found


Found = dict[str, Any]

Ki, Mi = 2**10, 2**20
CPU = torch.device("cpu")
TURNS = Turns(least=7, most=21, seconds=6.0)
CACHED = 2**19
"""Elements of a stretch that stays in the processor's cache."""
BOUNDS = {
    "t_speedup": Bound(">=", 25),
    "g_project_vs_sum": Bound("<=", 3),
    "g_apply_vs_add": Bound("<=", 2),
    "g_k_flat": Bound("<=", 0.20),
    "g_apply10_vs_average": Bound("<", 1),
    "projection_share": Bound("<=", 0.05),
    "extra_memory_mb": Bound("<=", 64),
}


class Sizes(NamedTuple):
    """The bounds are meant at the defaults; smaller sizes show that everything works."""

    t_elements: int = 4 * Mi
    t_K: int = 16
    elements: int = 64 * Mi
    K: int = 64 * Ki
    few_K: int = 4 * Ki
    many_K: int = 4 * Mi
    contributions: int = 10
    memory_elements: int = 256 * Mi


def measure(sizes: Sizes, shapes: Sequence[Shape], max_seconds: float, say: Say) -> dict[str, Any]:
    """Returns ``ratios``: value by key; ``bounds``: value, bound and whether it holds; ``measured``: the times behind
    each.

    ``max_seconds`` is for the training of one of ``shapes``. A value is None, with the ``reason`` under ``measured``,
    if memory is short or the system does not report it.
    """
    vector = WEIGHT_BYTES * sizes.elements
    measurements: dict[str, tuple[int, Callable[[], Found]]] = {
        "t_speedup": (9 * WEIGHT_BYTES * sizes.t_elements, lambda: t_speedup(sizes)),
        "g_project_vs_sum": (2 * vector, lambda: g_project_vs_sum(sizes)),
        "g_apply_vs_add": (3 * vector, lambda: g_apply_vs_add(sizes)),
        "g_k_flat": (2 * vector, lambda: g_k_flat(sizes)),
        "g_apply10_vs_average": ((3 + sizes.contributions) * vector, lambda: g_apply10_vs_average(sizes)),
        "projection_share": (0, lambda: projection_share(shapes, max_seconds, say)),
        "extra_memory_mb": (2 * WEIGHT_BYTES * sizes.memory_elements, lambda: extra_memory_mb(sizes)),
    }
    ratios: dict[str, float | None] = {}
    behind: dict[str, Found] = {}
    for key, (needed, measurement) in measurements.items():
        say(f"measuring {key}")
        reason = short_of(needed, CPU)
        behind[key] = {"value": None, "reason": reason} if reason else measurement()
        ratios[key] = behind[key].pop("value")
        say(f"{key} = {ratios[key]}, bound {BOUNDS[key]}")
    return {"sizes": sizes._asdict(), "ratios": ratios, "bounds": against(BOUNDS, ratios), "measured": behind}


def t_speedup(sizes: Sizes) -> Found:
    vectors = Vectors.random(sizes.t_elements, CPU)

    def both(way: Way) -> Action:
        project, apply_ = (vectors.action(way, name, sizes.t_K) for name in ("project", "apply"))
        return lambda: (project(), apply_())

    timings = in_turns({"naive": both(Naive()), "T": both(Family("T"))}, CPU, TURNS)
    return _found(timings.ratio("naive", "T"), timings, Family("T"))


def g_project_vs_sum(sizes: Sizes) -> Found:
    vectors = Vectors.random(sizes.elements, CPU)
    sides: dict[str, Action] = {
        "project": vectors.action(Family("G"), "project", sizes.K),
        "sum": vectors.before.sum,
        "two sums": lambda: (vectors.before.sum(), vectors.after.sum()),
    }
    timings = in_turns(sides, CPU, TURNS)
    as_many_bytes = timings.ratio("project", "two sums")
    return _found(timings.ratio("project", "sum"), timings) | {"vs_sum_of_as_many_bytes": as_many_bytes}


def g_apply_vs_add(sizes: Sizes) -> Found:
    vectors = Vectors.random(sizes.elements, CPU)
    added = torch.full_like(vectors.after, 1e-6)
    apply_ = vectors.action(Family("G"), "apply", sizes.K)
    timings = in_turns({"apply": apply_, "add_": lambda: vectors.after.add_(added)}, CPU, TURNS)
    return _found(timings.ratio("apply", "add_"), timings)


def g_k_flat(sizes: Sizes) -> Found:
    vectors = Vectors.random(sizes.elements, CPU)
    sides = {
        f"{operation}, K = {K}": vectors.action(Family("G"), operation, K)
        for operation in ("project", "apply")
        for K in (sizes.few_K, sizes.many_K)
    }
    timings = in_turns(sides, CPU, TURNS)
    growth = {
        operation: timings.ratio(f"{operation}, K = {sizes.many_K}", f"{operation}, K = {sizes.few_K}") - 1
        for operation in ("project", "apply")
    }
    return _found(max(growth.values()), timings) | {"growth": growth}


def g_apply10_vs_average(sizes: Sizes) -> Found:
    vectors = Vectors.random(sizes.elements, CPU)
    updates = [torch.full_like(vectors.after, 1e-6) for _ in range(sizes.contributions)]
    averages = _averages(vectors.after, updates)
    apply_ = vectors.action(Family("G"), "apply", sizes.K, sizes.contributions)
    timings = in_turns({"apply": apply_, **averages}, CPU, TURNS)
    ratios = {name: timings.ratio("apply", name) for name in averages}
    return _found(max(ratios["running sum"], ratios["one by one"]), timings) | {"vs": ratios}


def extra_memory_mb(sizes: Sizes) -> Found:
    peaks = memory_peaks(sizes.memory_elements, sizes.K)
    if peaks is None:
        return {"value": None, "reason": "this system does not report how much memory a single process has"}
    return {"value": max(peaks.values()) / 1e6, "kernel": Family("G").kernel(CPU), "peak_bytes": peaks}


def _averages(weights: Tensor, updates: Sequence[Tensor]) -> dict[str, Action]:
    """Returns ways to subtract the mean: a running sum, as on FedAvg's server; each update's part as it arrives; and
    sums by stretches that stay in the cache.
    """
    share, sums = 1 / len(updates), torch.zeros_like(weights)

    def running_sum(weights: Tensor, updates: Sequence[Tensor]) -> None:
        total = sums[: len(weights)].copy_(updates[0])
        for update in updates[1:]:
            total.add_(update)
        weights.sub_(total, alpha=share)

    def one_by_one() -> None:
        for update in updates:
            weights.sub_(update, alpha=share)

    def by_stretches() -> None:
        for stretch, *parts in zip(weights.split(CACHED), *(update.split(CACHED) for update in updates), strict=True):
            running_sum(stretch, parts)

    return {
        "running sum": lambda: running_sum(weights, updates),
        "one by one": one_by_one,
        "by stretches": by_stretches,
    }


def _found(value: float, timings: Timings, way: Family | None = None) -> Found:
    kernel = (way or Family("G")).kernel(CPU)
    return {"value": value, "kernel": kernel, **timings.to_json()}


STEPS, SEQUENCES, TOKENS = 10, 4, 256
MEASURED_STEPS = 3
SHARE_K = 65_536
BYTES_PER_ELEMENT = 24
"""Weights, gradients, Adam's two moments and the previous weights, in fp32, and one more."""
ACTIVATION_BYTES = 2 * 10**9
EFFICIENCY = 0.4
"""Ratio of training's floating-point operations per second to those in one large product of matrices, about."""


def projection_share(shapes: Sequence[Shape], max_seconds: float, say: Say) -> dict[str, Any]:
    """Returns ``value``: seconds of norms, projection (G, K = 65,536) and 1-bit quantisation over the local update's.

    The update is 10 steps of Adam on 4 sequences of 256 tokens each; 3 of them are timed after one that warms up, and
    scaled to 10.
    """
    shape = largest(shapes, max_seconds)
    say(f"training {shape.name}, {shape.elements:,} parameters, for {1 + MEASURED_STEPS} steps")
    model = random_llama(shape, CPU)
    config = LocalConfig(steps=1 + MEASURED_STEPS, batch_size=SEQUENCES, accumulation=1)
    with working_copy(model) as before:
        step = seconds_per_step(model, random_batches(shape, SEQUENCES, TOKENS), config)
        projection = _seconds_of_projection(before, trainable(model))
    return {
        "value": projection / (STEPS * step),
        "model": shape.name,
        "parameters": shape.elements,
        "K": SHARE_K,
        "kernel": Family("G").kernel(CPU),
        "local_steps": STEPS,
        "steps_measured": MEASURED_STEPS,
        "seconds": {"local_update": STEPS * step, "projection": projection},
    }


def largest(shapes: Sequence[Shape], max_seconds: float) -> Shape:
    """Returns the last of ``shapes`` that fits into memory and trains its steps in ``max_seconds``, or the first."""
    rate = EFFICIENCY * _operations_per_second()

    def fits(shape: Shape) -> bool:
        needed = ACTIVATION_BYTES + shape.elements * BYTES_PER_ELEMENT
        operations = 6 * shape.elements * SEQUENCES * TOKENS * (1 + MEASURED_STEPS)
        return short_of(needed, CPU) is None and operations / rate <= max_seconds

    return ([shape for shape in shapes if fits(shape)] or [shapes[0]])[-1]


def _operations_per_second() -> float:
    size = 1024
    matrix = torch.randn(size, size)
    timings = in_turns({"product": lambda: matrix @ matrix}, CPU, Turns(seconds=0.5))
    return 2 * size**3 / timings.median("product")


def _seconds_of_projection(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> float:
    blocks = blocks_of(after)

    def contribute() -> None:
        counts = allocate("norm", SHARE_K, norms(before, after, blocks), [block.size for block in blocks])
        quantize.quantize(project(before, after, blocks, basis("G"), counts, 1).coordinates, "sign")

    return in_turns({"projection": contribute}, CPU, Turns(least=5)).median("projection")


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[3]))
    print(json.dumps(peaks(int(sys.argv[1]), int(sys.argv[2]))))
