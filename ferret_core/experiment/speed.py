"""This machine's speed on an experiment's own model and data: a few local steps of two clients, losses, answers and an
aggregation, timed. It takes seconds, and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from ferret_core.experiment.estimate import AGGREGATED, Speed, TokenLengths, evaluated, operations
from ferret_core.experiment.token_lengths import sample
from ferret_core.models.architecture import Architecture
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.system.device import chosen_device, place

STEPS = 3
"""Local steps of a client; the first also warms up and is not counted."""
BATCHES = 64
"""Batches in which padding is counted."""
SEQUENCES = 8
TOKENS = 16
"""Length of the timed answers, beyond the first token."""
LONGEST = 15.0
"""Seconds of a batch beyond which nothing is timed."""
STEP_SECONDS = 1.0
"""Guessed length of a timed step: it accumulates as many of the specification's batches as fit, at least one."""
REPEATS = 2
"""Runs of a timed function; the shortest counts, because the first also loads and warms up."""


def measure(
    experiment: ResolvedExperiment, outline: Architecture, lengths: TokenLengths, guessed: Speed
) -> Speed | None:
    """Returns the speed with the model in its local folder; None for a model on the hub, an algorithm without local
    gradients on the model's own weights, or steps that would take too long at the ``guessed`` speed.

    Raises the errors of a round, e.g. ``memory.exhausted``.
    """
    local = experiment.traits.first_order
    each = operations(outline, lengths.mean, lengths.answer)
    if local is None or experiment.traits.own_shapes:
        return None
    seconds = 3 * each * local.batch_size / guessed.training
    if seconds > LONGEST:
        return None
    if (shard := sample(experiment.spec)) is None:
        return None
    accumulation = max(1, min(local.accumulation, int(STEP_SECONDS / seconds)))
    replica = Replica.load(_short(experiment.spec, accumulation))
    place(replica.model, chosen_device())
    tasks = _tasks(replica)
    trained = [_train(replica, task, shard) for task in tasks]
    sizes = [batch.input_ids.numel() for batch in islice(shard.batches(local.batch_size, tasks[0].data_seed), BATCHES)]
    _, answers = evaluated(experiment.spec, lengths)
    return Speed(
        training=3 * each * local.batch_size / (fmean(seconds for _, seconds in trained) * fmean(sizes)),
        forward=each / _loss_seconds(replica, shard, lengths),
        aggregation=_aggregation_seconds(replica, [sealed for sealed, _ in trained]),
        answer=_answer_seconds(replica, shard, answers) if answers else 0.0,
    )


def _short(spec: ExperimentSpec, accumulation: int) -> ExperimentSpec:
    """Returns the specification with ``STEPS`` steps of ``accumulation`` batches and bases of one example, without a
    guard of the step or of noise, and without noise in protected records."""
    tree = spec.model_dump(mode="json")
    tree["algorithm"]["local"] |= {"steps": STEPS, "epochs": None, "accumulation": accumulation}
    if "refuse_noisy_rounds" in tree["algorithm"]:
        tree["algorithm"]["refuse_noisy_rounds"] = False
    if "public_examples" in tree["algorithm"]:
        tree["algorithm"]["public_examples"] = 1
    tree["server"]["step_guard"] = False
    if spec.privacy.of_records:  # a pass takes the same time without noise
        tree |= {"privacy": {}, "secure": {}}
    return catalog.resolve(ExperimentSpec.model_validate(tree)).spec


def _tasks(replica: Replica) -> list[RoundTask]:
    return sampling.round_tasks(replica.spec, SIMULATION, 1, sampling.client_names(AGGREGATED), replica.digest)


def _train(replica: Replica, task: RoundTask, shard: ClientData) -> tuple[SealedContribution, float]:
    """Returns a client's contribution, and the seconds of its steps per computed token."""
    local, stamps = replica.experiment.traits.first_order, list[float]()
    assert local is not None
    part = contribute(replica, Client(task, shard, on_step=lambda step: stamps.append(perf_counter())))
    batches = islice(shard.batches(local.batch_size, task.data_seed), local.accumulation, STEPS * local.accumulation)
    return part.sealed, (stamps[-1] - stamps[0]) / sum(batch.input_ids.numel() for batch in batches)


def _loss_seconds(replica: Replica, shard: ClientData, lengths: TokenLengths) -> float:
    """Returns the seconds of the loss of a sequence of mean length."""
    chosen = _few(shard, SEQUENCES)
    seconds = _least_seconds(lambda: total_loss(replica.model, chosen, replica.spec.evaluation.batch_size))
    return seconds * lengths.mean / sum(len(prompt) + len(response) for prompt, response in chosen.examples)


def _answer_seconds(replica: Replica, shard: ClientData, answers: int) -> float:
    """Returns the seconds in which a batch of up to ``answers`` answers grows by a token."""
    size = min(replica.spec.evaluation.batch_size, answers)
    room = max(1, replica.context - TOKENS - 1)
    prompts = [prompt[:room] for prompt, _ in _few(shard, size).examples]

    def seconds(tokens: int) -> float:
        model, tokenizer = replica.model, replica.tokenizer
        return _least_seconds(lambda: generate(model, tokenizer, prompts, tokens, size, min_new_tokens=tokens))

    return max(0.0, seconds(1 + TOKENS) - seconds(1)) / TOKENS


def _least_seconds(run: Callable[[], object], undo: Callable[[], object] = lambda: None) -> float:
    times = list[float]()
    for _ in range(REPEATS):
        begin = perf_counter()
        run()
        times.append(perf_counter() - begin)
        undo()
    return min(times)


def _few(shard: ClientData, most: int) -> ClientData:
    examples = shard.examples
    return ClientData(examples[:: -(-len(examples) // most)], shard.pad_id)


def _aggregation_seconds(replica: Replica, sealed: Sequence[SealedContribution]) -> float:
    """Returns the seconds of an aggregation without a guard."""
    base = replica.snapshot()
    return _least_seconds(lambda: aggregate_round(replica, SIMULATION, sealed), undo=lambda: replica.restore(base))
