"""Estimates of an experiment's traffic, memory, time and noise before training, from its specification and an outline.

Sizes are exact. Noise is from :mod:`ferret_core.aggregation.projection_noise`. Memory and time are estimates: the
multiples of the weights that docs/training.md lists, and six operations per weight and token (Kaplan et al., "Scaling
Laws for Neural Language Models", 2020, https://arxiv.org/abs/2001.08361, section 2.1) at the given speed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ferret_core.aggregation.projection_noise import (
    ADVISED,
    MOST,
    ProjectionNoise,
    exceeds_limit,
    expected,
    participants_of,
    remedies,
)
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.architecture import Architecture
from ferret_core.models.shapes import count, sizes
from ferret_core.projection.blocks import Block
from ferret_core.training.config import LocalConfig
from ferret_core.training.footprint import BF16, FP32, local_bytes

ACTIVATIONS = 34
"""Bytes per layer, token and hidden unit in half precision, twice that in fp32: Korthikanti et al., 2022,
https://arxiv.org/abs/2205.05198, equation 1 without the attention matrix."""
PASS_SECONDS = 1e-9
"""Seconds per weight of an aggregation: reading, moving and hashing it."""
TERM_SECONDS = 3e-10
"""Seconds per weight and contribution of a reconstruction on basis G or H, on one core: docs/results/projection.md."""
HEADER = 600
"""Bytes of a contribution's header: ids, digests, seed and metrics; up to 1,024 where names are long."""
DOWN = 900
"""Bytes of the header of a round's update."""
LISTED = 5
"""Bytes of one K_l in the header's list."""
SHORT = 0.01
"""Minimum useful length of a normalized step; shorter ones hardly move the model."""
EFFICIENCY = 0.4
"""Training speed as a share of a plain product's speed: measured on CPU at 3 and 91 M parameters."""
WIDTH = 1024


class Estimate(NamedTuple):
    """Estimated cost. ``bytes_up`` and ``bytes_down`` are per participant and round; None if they are known only once
    the model is loaded. ``total_bytes`` covers all participants and rounds. ``memory_bytes`` is a participant's
    peak, ``local_seconds`` its training time per round, ``aggregate_seconds`` the server's time per round.
    """

    d: int
    K: int | None
    participants: int
    rounds: int
    bytes_up: int | None
    bytes_down: int | None
    total_bytes: int | None
    noise: ProjectionNoise | None
    memory_bytes: int | None
    local_seconds: float | None
    aggregate_seconds: float
    advice: tuple[str, ...]


def estimate(
    experiment: ResolvedExperiment, outline: Architecture, examples: int | None, tokens: float, flops: float
) -> Estimate:
    """The plan of an experiment.

    ``examples`` is the number per participant, ``tokens`` the length of a sequence, ``flops`` a participant's
    operations per second.
    """
    spec, config, traits = experiment
    d, participants = count(outline.shapes), participants_of(spec)
    blocks = [] if traits.projection is None else traits.projection.cut(outline.shapes)
    K = None if traits.projection is None else traits.projection.total(blocks)
    up = None if traits.own_shapes else config.size(outline.shapes).arrays
    sent = None if up is None else up + HEADER + LISTED * len(blocks)
    down = None if up is None else _down(traits, up + LISTED * len(blocks), participants, K, d)
    total = None if sent is None or down is None else spec.rounds * participants * (sent + down)
    found = _noise(experiment, outline, examples)
    trained = None if traits.own_shapes else traits.first_order
    return Estimate(
        d=d,
        K=K,
        participants=participants,
        rounds=spec.rounds,
        bytes_up=sent,
        bytes_down=down,
        total_bytes=total,
        noise=found,
        memory_bytes=_memory(trained, outline, tokens) if trained else None,
        local_seconds=_seconds(trained, d, examples, tokens, flops) if trained else None,
        aggregate_seconds=d * (PASS_SECONDS + (participants * TERM_SECONDS if found else 0)),
        advice=tuple(_advice(experiment, outline, found)),
    )


def _down(traits: Traits, up: int, participants: int, K: int | None, d: int) -> int | None:
    """Returns the downloaded bytes: coordinates of each participant, or under a shared seed their mean in fp32."""
    if traits.projection is not None:
        return DOWN + (4 * (K or 0) if traits.projection.seeds == "shared" else participants * up)
    return 4 * d if traits.dense else None


def _noise(experiment: ResolvedExperiment, outline: Architecture, examples: int | None) -> ProjectionNoise | None:
    if (projection := experiment.traits.projection) is None:
        return None
    return expected(experiment, outline.shapes, _weights(outline, projection.cut(outline.shapes)), examples)


def _weights(outline: Architecture, blocks: Sequence[Block]) -> list[float]:
    """Returns the RMS of each block's weights; every part of a parameter is assumed to have the RMS of the whole."""
    squares = [sum(piece.length * outline.rms[piece.parameter] ** 2 for piece in block.pieces) for block in blocks]
    return [math.sqrt(square / block.size) for square, block in zip(squares, blocks, strict=True)]


def _memory(local: LocalConfig, outline: Architecture, tokens: float) -> int:
    """Returns the bytes of the weights, the trained copy, its gradients, the optimizer's state, and activations."""
    d, largest = count(outline.shapes), max(sizes(outline.shapes).values())
    width = (2 if local.precision == "float32" else 1) * ACTIVATIONS * outline.hidden
    kept = width * (1 + outline.layers / 17 if local.activation_checkpointing else outline.layers)
    original = (BF16 if local.pure else FP32) * d
    return round(original + local_bytes(local, d, d, largest) + kept * tokens * local.batch_size)


def _seconds(local: LocalConfig, d: int, examples: int | None, tokens: float, flops: float) -> float | None:
    if local.epochs is not None and examples is None:
        return None
    return 6 * d * local.steps_for(examples) * local.batch_size * local.accumulation * tokens / flops


def _advice(experiment: ResolvedExperiment, outline: Architecture, found: ProjectionNoise | None) -> list[str]:
    if found is None or (projection := experiment.traits.projection) is None:
        return []
    advice = list[str]()
    if found.total > ADVISED:
        ways = remedies(found, experiment, outline.shapes)
        refused = f"beyond {MOST:.0%} it is refused; " if exceeds_limit(found, experiment) else ""
        advice.append(
            f"noise of {found.total:.0%} of the weights: {refused}each of these brings it to {ADVISED:.0%}: "
            f"{'; '.join(ways.values())}"
        )
    local = projection.local
    if local.optimizer == "normalized" and local.learning_rate < SHORT:
        advice.append(
            f"algorithm.local.learning_rate = {local.learning_rate:g} is the length of a normalized step and moves "
            "next to nothing: leave it out for 0.1, or name the optimizer that it is meant for"
        )
    return advice


def document(found: Estimate) -> Mapping[str, object]:
    """Returns the plan as one JSON object; the noise is in percent of the weights, total and for its largest block."""
    told = None
    if found.noise is not None:
        worst = int(np.argmax(found.noise.ratios))
        told = {
            "percent": 100 * found.noise.total,
            "largest": {"block": found.noise.blocks[worst], "percent": 100 * float(found.noise.ratios[worst])},
        }
    return {**found._asdict(), "noise": told, "advice": list(found.advice)}


def measured_flops() -> float:
    """Returns operations per second in training: the measured speed of an fp32 product, less training's overhead."""
    left = np.ones((WIDTH, WIDTH), np.float32)
    seconds = min(_timed(left) for _ in range(4))
    return EFFICIENCY * 2 * WIDTH**3 / seconds


def _timed(matrix: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> float:
    begin = time.perf_counter()
    np.matmul(matrix, matrix)
    return time.perf_counter() - begin
