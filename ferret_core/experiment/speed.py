"""This machine's speed on an experiment's own model and data: two local steps, a few losses and answers, and an
aggregation, timed. It takes seconds, and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from statistics import fmean
from time import perf_counter

from ferret_core import catalog
from ferret_core.aggregation.aggregate import aggregate_round
from ferret_core.algorithms.base import Client
from ferret_core.catalog import ResolvedExperiment
from ferret_core.client.local_round import contribute
from ferret_core.contribution import SealedContribution
from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.evaluation.evaluate import total_loss
from ferret_core.evaluation.generate import generate
from ferret_core.experiment.estimate import TERM_SECONDS, Speed, TokenLengths, operations
from ferret_core.experiment.token_lengths import sample
from ferret_core.models.architecture import Architecture
from ferret_core.models.shapes import count
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.system.device import chosen_device, place

STEPS = 3
"""Local steps; the first also warms up and is not counted."""
BATCHES = 64
"""Batches in which padding is counted."""
SEQUENCES = 8
TOKENS = 8
"""Length of the timed answers, beyond the first token."""
LONGEST = 15.0
"""Seconds of a step beyond which nothing is timed."""


def measure(
    experiment: ResolvedExperiment, outline: Architecture, lengths: TokenLengths, guessed: Speed
) -> Speed | None:
    """Returns the speed with the model in its local folder; None for a model on the hub, an algorithm without local
    gradients on the model's own weights, or steps that would take too long at the ``guessed`` speed.

    Raises the errors of a round, e.g. ``memory.exhausted``.
    """
    local = experiment.traits.first_order
    each = operations(outline, lengths)
    if local is None or experiment.traits.own_shapes or 3 * each * local.batch_size > LONGEST * guessed.training:
        return None
    if (shard := sample(experiment.spec)) is None:
        return None
    replica = Replica.load(_short(experiment.spec))
    place(replica.model, chosen_device())
    stamps: list[float] = []
    client = Client(_task(replica), shard, on_step=lambda step: stamps.append(perf_counter()))
    part = contribute(replica, client)
    sizes = [
        batch.input_ids.numel() for batch in islice(shard.batches(local.batch_size, client.task.data_seed), BATCHES)
    ]
    per_token = (stamps[-1] - stamps[0]) / sum(sizes[1:STEPS])
    answers = _answer_seconds(replica, shard) if experiment.spec.evaluation.generate_examples else 0.0
    return Speed(
        training=3 * each * local.batch_size / (per_token * fmean(sizes)),
        forward=each / _loss_seconds(replica, shard, lengths),
        weight=_aggregation_seconds(replica, [part.sealed]) / count(outline.shapes) - TERM_SECONDS,
        answer=answers,
    )


def _short(spec: ExperimentSpec) -> ExperimentSpec:
    """Returns the specification with ``STEPS`` steps of one batch and bases of one example, without a guard of the step
    or of noise, and without noise in protected records."""
    tree = spec.model_dump(mode="json")
    tree["algorithm"]["local"] |= {"steps": STEPS, "epochs": None, "accumulation": 1}
    if "refuse_noisy_rounds" in tree["algorithm"]:
        tree["algorithm"]["refuse_noisy_rounds"] = False
    if "public_examples" in tree["algorithm"]:
        tree["algorithm"]["public_examples"] = 1
    tree["server"]["step_guard"] = False
    if spec.privacy.of_records:  # a pass takes the same time without noise
        tree |= {"privacy": {}, "secure": {}}
    return catalog.resolve(ExperimentSpec.model_validate(tree)).spec


def _task(replica: Replica) -> RoundTask:
    name = sampling.client_names(1)[0]
    return sampling.round_tasks(replica.spec, SIMULATION, 1, [name], replica.digest)[0]


def _loss_seconds(replica: Replica, shard: ClientData, lengths: TokenLengths) -> float:
    """Returns the seconds of the loss of a sequence of mean length."""
    chosen = _few(shard, SEQUENCES)
    begin = perf_counter()
    total_loss(replica.model, chosen, replica.spec.evaluation.batch_size)
    seconds = perf_counter() - begin
    return seconds * lengths.mean / sum(len(prompt) + len(response) for prompt, response in chosen.examples)


def _answer_seconds(replica: Replica, shard: ClientData) -> float:
    """Returns the seconds in which a batch of answers grows by a token."""
    size = replica.spec.evaluation.batch_size
    prompts = [prompt for prompt, _ in _few(shard, size).examples]

    def seconds(tokens: int) -> float:
        begin = perf_counter()
        generate(replica.model, replica.tokenizer, prompts, tokens, size)
        return perf_counter() - begin

    short = seconds(1)
    return max(0.0, seconds(1 + TOKENS) - short) / TOKENS


def _few(shard: ClientData, most: int) -> ClientData:
    examples = shard.examples
    return ClientData(examples[:: -(-len(examples) // most)], shard.pad_id)


def _aggregation_seconds(replica: Replica, sealed: Sequence[SealedContribution]) -> float:
    """Returns the seconds of an aggregation without a guard; the first loads the kernels."""
    base = replica.snapshot()
    for _ in range(2):
        begin = perf_counter()
        aggregate_round(replica, SIMULATION, sealed)
        seconds = perf_counter() - begin
        replica.restore(base)
    return seconds
