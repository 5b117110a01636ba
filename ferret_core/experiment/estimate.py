"""Estimates of an experiment's traffic, memory, time and noise before training, from its specification and an outline.

Sizes are exact. Noise is from :mod:`ferret_core.aggregation.projection_noise`. Memory and time are estimates: the
bytes that :mod:`ferret_core.training.footprint` counts, and two operations per weight and token and four per layer,
hidden unit and pair of tokens (Kaplan et al., "Scaling Laws for Neural Language Models", 2020,
https://arxiv.org/abs/2001.08361, section 2.1, with attention over all pairs), three times as many in training, at the
given speed. :mod:`ferret_core.experiment.speed` measures it with the model itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from ferret_core import compatibility
from ferret_core.aggregation.projection_noise import (
    ADVISED,
    MOST,
    SHARE,
    ProjectionNoise,
    accumulated,
    exceeds_limit,
    expected,
    expected_share,
    participants_of,
    remedies,
)
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.architecture import Architecture
from ferret_core.models.shapes import Shapes, count, sizes
from ferret_core.privacy.accounting import epsilon_of
from ferret_core.privacy.commitment import NONCE_BYTES
from ferret_core.privacy.mechanism import RecordMechanism
from ferret_core.projection import sign_sums
from ferret_core.projection.blocks import Block
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, PrivacySpec, SecureSpec
from ferret_core.rounds import sampling
from ferret_core.secure import fixed_point
from ferret_core.secure.packing import Layout
from ferret_core.secure.roster import survivors_needed
from ferret_core.secure.shares import message_bytes
from ferret_core.training.config import LocalConfig
from ferret_core.training.footprint import BF16, FP32, PROCESS, Counts, evaluation_bytes, least_bytes, training_bytes

PASS_SECONDS = 1e-9
"""Seconds per weight of an aggregation: reading, moving and hashing it."""
ENTRY_SECONDS = {"G": 1e-9, "H": 3.4e-9, "R": 6e-10, "T": 6e-10}
"""Seconds of a projection per weight, for R and T per weight and coordinate of its block, on one core. T is in
docs/results/projection.md; G and H are from SmolLM2-135M, without a committed run (decision 64)."""
TERM_SECONDS = 3e-10
"""Seconds per weight and contribution of a reconstruction on basis G or H, on one core: docs/results/projection.md."""
BLOCK_SECONDS = 3e-4
"""Seconds per block and contribution of decoding, reconstruction and statistics, from models
of 3 and 135 M parameters, without a committed run."""
EMBEDDINGS = ("lm_head.weight", "model.embed_tokens.weight")
"""Tied ones are in a model's files under either name, once."""
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
AGGREGATED = 2
"""Contributions of a timed aggregation; from two on it also compares the updates."""
GUARDED = 8
"""Sequences of the loss guard without development examples: ``SEQUENCES`` in its module, which needs torch."""


class EvaluationLengths(NamedTuple):
    """Number of ``examples`` in an evaluation, and means in tokens: of prompt and response, of the response
    (``answer``), and of the prompts that the model continues, padding included (``prompt``).
    """

    examples: int
    mean: float
    answer: float
    prompt: float


class TokenLengths(NamedTuple):
    """Lengths of tokenised training examples: the ``mean`` of prompt and response, of the response (``answer``), the
    ``longest``, the share that is ``cut``, and the lengths in an ``evaluation``; the last two are None if the data were
    not read.
    """

    mean: float
    answer: float
    longest: int
    cut: float | None = None
    evaluation: EvaluationLengths | None = None

    @classmethod
    def assumed(cls, mean: float, experiment: ResolvedExperiment, outline: Architecture) -> TokenLengths:
        """Returns lengths around ``mean``, half of it the response, up to the specification's limit."""
        limits = [limit for limit in (experiment.spec.prompt.max_tokens, outline.context) if limit]
        return cls(mean, mean / 2, max(math.ceil(mean), min(limits, default=0)))


class Speed(NamedTuple):
    """A machine's speed: operations per second in ``training`` and in a ``forward`` pass, seconds of an
    ``aggregation`` of ``AGGREGATED`` contributions without a guard, and seconds in which a batch of answers grows by a
    token (``answer``); the last two are None if unknown.
    """

    training: float
    forward: float
    aggregation: float | None = None
    answer: float | None = None

    @classmethod
    def assumed(cls, flops: float) -> Speed:
        """Returns the speed of a machine with ``flops`` operations per second in training."""
        return cls(flops, flops)


class PrivacyPlan(NamedTuple):
    """Protection of records: ε at ``delta`` after all rounds with noise z, None without dp-accounting; the useful
    coordinates K*; and the noise in the update relative to that of dense updates with the same ε."""

    unit: str
    epsilon: float | None
    delta: float
    noise_multiplier: float
    useful: float
    relative_noise: float


class SumPlan(NamedTuple):
    """Cost of a secure sum: its ``bits`` for each number, the bytes of keys and shares, and how many of the
    ``members`` of the largest group must stay.

    The comparison is with the same experiment without a sum (``plain_bytes``); a projection then has separate seeds and
    the default bytes. ``least_noise`` and ``most_noise`` bound the energy of the sum's noise relative to that: the
    first is for updates at right angles, the second for equal ones. They are None for whole updates, and if noise
    protects records, which is larger.
    """

    bits: int
    key_bytes: int
    members: int
    survivors: int
    plain_bytes: int
    least_noise: float | None
    most_noise: float | None


class Estimate(NamedTuple):
    """Estimated cost. ``bytes_up`` and ``bytes_down`` are per participant and round; None if they are known only once
    the model is loaded. ``total_bytes`` covers all participants and rounds. ``memory_bytes`` is the peak of a
    process that trains, ``least_memory_bytes`` that of one with little memory, ``evaluate_memory_bytes`` of one that
    evaluates, ``aggregate_memory_bytes`` of one that aggregates. ``local_seconds`` is a participant's training time per
    round, ``projection_seconds`` that of its projections (a measured speed of steps in pure bf16 contains it),
    ``aggregate_seconds`` the server's;
    ``evaluate_seconds`` is the time of one evaluation, if every answer has the greatest length.
    ``noise`` is that of round 1, ``accumulated_noise`` that of all rounds relative to the weights' RMS.
    ``sent`` of the K coordinates are sent: the largest, or all. ``cut_share`` is the share of examples longer than the
    limit. ``checkpoints`` is the number of models that are kept at the end, the base model included, and ``disk_bytes``
    their size with that of all updates and contributions.
    ``sums`` is None without secure sums, ``privacy`` unless records are protected by known noise.
    """

    d: int
    K: int | None
    sent: int | None
    participants: int
    rounds: int
    bytes_up: int | None
    bytes_down: int | None
    total_bytes: int | None
    noise: ProjectionNoise | None
    accumulated_noise: float | None
    memory_bytes: int | None
    least_memory_bytes: int | None
    evaluate_memory_bytes: int | None
    aggregate_memory_bytes: int | None
    cut_share: float | None
    local_seconds: float | None
    projection_seconds: float | None
    evaluate_seconds: float
    aggregate_seconds: float
    checkpoints: int
    disk_bytes: int | None
    sums: SumPlan | None
    privacy: PrivacyPlan | None
    advice: tuple[str, ...]


def estimate(
    experiment: ResolvedExperiment, outline: Architecture, examples: int | None, lengths: TokenLengths, speed: Speed
) -> Estimate:
    """The plan of an experiment.

    ``examples`` is the number per participant, ``lengths`` measures its sequences, ``speed`` a participant's machine
    and the server's.
    """
    spec, _, traits = experiment
    d, participants = count(outline.shapes), participants_of(spec)
    blocks = [] if traits.projection is None else traits.projection.cut(outline.shapes)
    K = None if traits.projection is None else sum(traits.projection.allocate([0.0] * len(blocks), blocks))
    up = None if traits.own_shapes else arrays_bytes(experiment, outline.shapes)
    sent = up if up is None or spec.summed else _listed(up, traits, blocks) + HEADER
    down = None if up is None else _down(traits, _listed(up, traits, blocks), participants, K, d)
    total = None if sent is None or down is None else spec.rounds * participants * (sent + down)
    found = _noise(experiment, outline, examples)
    trained = None if traits.own_shapes else traits.first_order
    known = outline.sizes.hidden > 0  # or else activations cannot be counted
    return Estimate(
        d=d,
        K=K,
        sent=None if traits.projection is None else sum(traits.projection.expected_sent(blocks)),
        participants=participants,
        rounds=spec.rounds,
        bytes_up=sent,
        bytes_down=down,
        total_bytes=total,
        noise=found,
        accumulated_noise=None if found is None else accumulated(found, experiment),
        memory_bytes=_training_memory(trained, traits, outline, lengths) if trained and known else None,
        least_memory_bytes=_least_memory(trained, traits, outline, lengths) if trained and known else None,
        evaluate_memory_bytes=_evaluation_memory(spec, outline, lengths) if known else None,
        aggregate_memory_bytes=aggregation_bytes(experiment, d),
        cut_share=lengths.cut,
        local_seconds=_training_seconds(spec, trained, outline, examples, lengths, speed) if trained else None,
        projection_seconds=_projection_seconds(experiment, blocks, examples),
        evaluate_seconds=_evaluation_seconds(spec, outline, lengths, speed),
        aggregate_seconds=_aggregation_seconds(traits, outline, participants, speed)
        + _guard_seconds(spec, outline, lengths, speed),
        checkpoints=(kept := _checkpoints(spec)),
        disk_bytes=None
        if sent is None or down is None
        else kept * weight_bytes(spec) * d + spec.rounds * (down + participants * sent),
        sums=_sums(experiment, outline, blocks) if spec.secure.masked and up is not None else None,
        privacy=_privacy(spec, K or 1, participants),
        advice=tuple(_advice(experiment, outline, found)),
    )


def _checkpoints(spec: ExperimentSpec) -> int:
    """Returns the number of models that are kept: the base model, the newest, and the best where they are others."""
    saved, keep = sampling.checkpoint_rounds(spec), spec.checkpoint.keep
    return 1 + (min(saved, keep + spec.checkpoint.keep_best) if isinstance(keep, int) else saved)


def weight_bytes(spec: ExperimentSpec) -> int:
    """Returns the bytes of a weight of the global model."""
    return FP32 if spec.model.dtype == "float32" else BF16


def arrays_bytes(experiment: ResolvedExperiment, shapes: Shapes) -> int | None:
    """Returns the bytes of a contribution without its header, or of a vector for a sum with its keys and shares; None
    if noise that protects records is not computed yet. ``shapes`` has the shapes of the tuned parameters.
    """
    spec = experiment.spec
    if not spec.summed:
        return experiment.config.size(shapes).arrays
    if spec.privacy.of_records and spec.privacy.noise_multiplier is None:
        return None
    members = compatibility.largest_group(experiment)
    added = message_bytes(members) if spec.secure.masked else NONCE_BYTES
    return _layout(experiment, shapes, members).size + added


def _listed(arrays: int, traits: Traits, blocks: Sequence[Block]) -> int:
    """Returns the bytes of the arrays with the list of K_l, which a budget includes."""
    listed = arrays + LISTED * len(blocks)
    budget = None if traits.projection is None else traits.projection.bytes_per_round
    return listed if budget is None else min(listed, budget)


def _layout(experiment: ResolvedExperiment, shapes: Shapes, members: int) -> Layout:
    """Returns the layout of a participant's vector in a sum over this many ``members``."""
    spec, projection = experiment.spec, experiment.traits.projection
    if projection is None:
        return Layout(fixed_point.segments(count(shapes), members), members)
    blocks = projection.cut(shapes)
    K = projection.total(blocks)
    if spec.privacy.of_records:
        return RecordMechanism.of(spec, members).layout(K)
    return Layout(sign_sums.segments(K, len(blocks)), members)


def _sums(experiment: ResolvedExperiment, outline: Architecture, blocks: Sequence[Block]) -> SumPlan:
    """Returns the cost of the secure sum, compared with :func:`_without_sum`.

    Under one shared basis the noises of n participants add up in so far as their updates agree: with the mean cosine c
    of two updates, the noise's energy is 1 + (n − 1)·c times that of separate seeds, between 1 and n.
    """
    spec, shapes = experiment.spec, outline.shapes
    members = compatibility.largest_group(experiment)
    plain = _without_sum(experiment)
    least = None
    if experiment.traits.projection is not None and not spec.privacy.of_records:
        least = _noise_energy(experiment, outline) / _noise_energy(plain, outline)
    return SumPlan(
        bits=_layout(experiment, shapes, members).rings[0].bits,
        key_bytes=message_bytes(members),
        members=members,
        survivors=survivors_needed(members, spec.secure.least, spec.secure.colluders),
        plain_bytes=_listed(plain.config.size(shapes).arrays, plain.traits, blocks) + HEADER,
        least_noise=least,
        most_noise=None if least is None else least * participants_of(spec),
    )


def _without_sum(experiment: ResolvedExperiment) -> ResolvedExperiment:
    """Returns the experiment without secure sums; a projection has separate seeds, and as many signs as fit into the
    default bytes."""
    algorithm = experiment.spec.algorithm
    if experiment.traits.projection is not None:
        algorithm = algorithm.model_copy(update={"seeds": "own", "coordinates": "sign", "K": None})
    unmasked = {"algorithm": algorithm, "secure": SecureSpec(), "privacy": PrivacySpec()}
    return ResolvedExperiment.of(experiment.spec.model_copy(update=unmasked))


def _noise_energy(experiment: ResolvedExperiment, outline: Architecture) -> float:
    """Returns the squared norm of the noise in one expected update of unit steps."""
    assert experiment.traits.projection is not None
    return float(np.square(experiment.traits.projection.expected_norms(outline.shapes, None).noise).sum())


def _privacy(spec: ExperimentSpec, K: int, members: int) -> PrivacyPlan | None:
    """Returns the protection of records by ``K`` coordinates: their noise is 1 + K*/K times that of dense updates."""
    privacy, noise = spec.privacy, spec.privacy.noise_multiplier
    if not privacy.of_records or noise is None:
        return None
    epsilon = None
    with suppress(FerretError):
        epsilon = epsilon_of(privacy.rate, noise, spec.rounds, privacy.delta)
    useful = RecordMechanism.of(spec, members).useful
    return PrivacyPlan(privacy.unit, epsilon, privacy.delta, noise, useful, 1 + useful / K)


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


def _training_memory(local: LocalConfig, traits: Traits, outline: Architecture, lengths: TokenLengths) -> int:
    return training_bytes(local, _counts(traits, outline), outline.sizes, lengths.longest * local.batch_size)


def _least_memory(local: LocalConfig, traits: Traits, outline: Architecture, lengths: TokenLengths) -> int:
    """Returns the peak with one sequence in a pass, or with steps in the backward pass if these take less and are
    possible."""
    changed = local.in_backward()
    whole = changed.needs_whole_gradients() or traits.needs_whole_gradients
    counts, ways = _counts(traits, outline), [local] if whole else [local, changed]
    return min(least_bytes(way, counts, outline.sizes, lengths.longest) for way in ways)


def _counts(traits: Traits, outline: Architecture) -> Counts:
    d, largest = count(outline.shapes), max(sizes(outline.shapes).values())
    return Counts(d, d, largest, 0 if traits.projection else d, traits.participant_vectors * d)


def _evaluation_memory(spec: ExperimentSpec, outline: Architecture, lengths: TokenLengths) -> int:
    weights = weight_bytes(spec) * count(outline.shapes)
    return evaluation_bytes(outline.sizes, weights, lengths.longest * spec.evaluation.batch_size)


def aggregation_bytes(experiment: ResolvedExperiment, d: int) -> int:
    """Returns the peak of a process that aggregates: the model and its base, and fp32 vectors of d numbers.

    Moments are there twice, to undo a round. Without a vector for the update, a step with moments needs another copy.
    The means of all groups of a masked sum are held.
    """
    spec, traits, server = experiment.spec, experiment.traits, experiment.spec.server
    moments = (server.momentum > 0) + 2 * (server.optimizer != "sgd")
    vectors = 2 * moments + max(traits.aggregation_vectors, moments > 0)
    if spec.robust.rule == "cosine_filter":
        vectors += 1
    if spec.secure.masked and traits.dense:
        vectors += spec.secure.groups(participants_of(spec))
    if traits.own_shapes:  # the adapters' own vectors are short
        return PROCESS + weight_bytes(spec) * d
    return PROCESS + (2 * weight_bytes(spec) + FP32 * vectors) * d


def operations(outline: Architecture, tokens: float, answer: float) -> float:
    """Returns the operations of a forward pass over ``tokens`` tokens, with logits for the ``answer`` last of them."""
    found = outline.sizes
    head = found.vocabulary * found.hidden
    body = count(outline.shapes) - head * sum(name in outline.shapes for name in EMBEDDINGS)
    attention = 4 * found.layers * found.hidden * tokens**2
    return 2 * (body * tokens + head * answer) + attention


def evaluated(spec: ExperimentSpec, lengths: TokenLengths) -> tuple[int, int]:
    """Returns the number of examples and of answers in an evaluation."""
    wanted = spec.evaluation
    examples = wanted.examples if lengths.evaluation is None else lengths.evaluation.examples
    return examples, min(wanted.generate_examples, examples)


def _training_seconds(
    spec: ExperimentSpec,
    local: LocalConfig,
    outline: Architecture,
    examples: int | None,
    lengths: TokenLengths,
    speed: Speed,
) -> float | None:
    if local.epochs is not None and examples is None:
        return None
    sequences = (spec.privacy.batch or 0) if spec.privacy.of_records else local.sequences_for(examples)
    return 3 * operations(outline, lengths.mean, lengths.answer) * sequences / speed.training


def _evaluation_seconds(spec: ExperimentSpec, outline: Architecture, lengths: TokenLengths, speed: Speed) -> float:
    evaluation = spec.evaluation
    examples, answers = evaluated(spec, lengths)
    found = lengths.evaluation or EvaluationLengths(examples, lengths.mean, lengths.answer, lengths.mean)
    losses = examples * operations(outline, found.mean, found.answer)
    prompts = answers * operations(outline, found.prompt, 1)
    batch = min(evaluation.batch_size, answers)
    token = 2 * count(outline.shapes) * batch / speed.forward if speed.answer is None else speed.answer
    batches = math.ceil(answers / evaluation.batch_size)
    return (losses + prompts) / speed.forward + batches * evaluation.max_new_tokens * token


def _aggregation_seconds(traits: Traits, outline: Architecture, participants: int, speed: Speed) -> float:
    """Returns the seconds of an aggregation without its guards."""
    blocks = [] if traits.projection is None else traits.projection.cut(outline.shapes)
    contribution = TERM_SECONDS * sum(block.size for block in blocks) + BLOCK_SECONDS * len(blocks)
    if speed.aggregation is None:
        return PASS_SECONDS * count(outline.shapes) + participants * contribution
    return speed.aggregation + max(0, participants - AGGREGATED) * contribution


def _guard_seconds(spec: ExperimentSpec, outline: Architecture, lengths: TokenLengths, speed: Speed) -> float:
    """Returns the seconds in which the guards measure a round: the whole step, and with the step guard half of it."""
    server = spec.server
    sequences = 2 * server.development_examples if server.step_guard else GUARDED
    return sequences * operations(outline, lengths.mean, lengths.answer) / speed.forward


def _projection_seconds(experiment: ResolvedExperiment, blocks: Sequence[Block], examples: int | None) -> float | None:
    """Returns the time of a participant's projections in a round: one, or one for each step that is rounded to bf16, or
    for each drawn unit."""
    if (projection := experiment.traits.projection) is None:
        return None
    local = projection.local
    if local.pure and local.epochs is not None and examples is None:
        return None
    if projection.basis in ("G", "H"):
        entries = sum(block.size for block in blocks)
    else:
        moves = [math.sqrt(block.size) for block in blocks]
        entries = sum(block.size * K for block, K in zip(blocks, projection.allocate(moves, blocks), strict=True))
    times = local.steps_for(examples) if local.pure else 1
    if experiment.spec.privacy.of_records:
        times = experiment.spec.privacy.batch or 0
    return entries * ENTRY_SECONDS[projection.basis] * times


def _advice(experiment: ResolvedExperiment, outline: Architecture, found: ProjectionNoise | None) -> list[str]:
    if found is None or (projection := experiment.traits.projection) is None:
        return []
    advice = list[str]()
    if found.total > ADVISED:
        ways = remedies(found, experiment, outline.shapes).values()
        refused = f", and beyond {MOST:.0%} it is refused" if exceeds_limit(found, experiment) else ""
        share = expected_share(found)
        cost = f"some {share:.0%} of what a round gains" if share < 1 else "more than a round gains"
        advice.append(
            f"noise of {found.total:.0%} of the weights is expected to cost {cost}{refused}; each of these brings it "
            f"to {SHARE:.0%}, the best first:"
        )
        advice += [f"{number}. {way}" for number, way in enumerate(ways, start=1)]
    local = projection.local
    if local.optimizer == "normalized" and local.learning_rate < SHORT:
        advice.append(
            f"algorithm.local.learning_rate = {local.learning_rate:g} is the length of a normalized step and moves "
            "next to nothing: leave it out for 0.1, or name the optimizer that it is meant for"
        )
    return advice


def document(found: Estimate) -> Mapping[str, object]:
    """Returns the plan as one JSON object; the noise is in percent of the weights: total, over all rounds, and for its
    largest block.
    """
    fields, told = found._asdict(), None
    accumulated_noise = fields.pop("accumulated_noise")
    if found.noise is not None:
        worst = int(np.argmax(found.noise.ratios))
        told = {
            "percent": 100 * found.noise.total,
            "accumulated_percent": 100 * accumulated_noise,
            "largest": {"block": found.noise.blocks[worst], "percent": 100 * float(found.noise.ratios[worst])},
        }
    nested = {name: part and part._asdict() for name, part in (("sums", found.sums), ("privacy", found.privacy))}
    return {**fields, "noise": told, **nested, "advice": list(found.advice)}


def assumed_speed() -> Speed:
    """Returns the speed guessed from that of an fp32 product on this machine, less training's overhead."""
    left = np.ones((WIDTH, WIDTH), np.float32)
    seconds = min(_timed(left) for _ in range(4))
    return Speed.assumed(EFFICIENCY * 2 * WIDTH**3 / seconds)


def _timed(matrix: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> float:
    begin = time.perf_counter()
    np.matmul(matrix, matrix)
    return time.perf_counter() - begin
