"""Membership in the training of a final model: the drop of the loss on a text since the base model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ferret_bench._leakage import attack
from ferret_bench._leakage.power import Reals, Scores, one_target
from ferret_bench._leakage.rounds import BATCH, COLLUDERS, LEAST, Row, row_spec
from ferret_core.aggregation.masked_sum import sum_in_process
from ferret_core.algorithms.base import Client
from ferret_core.client.local_round import contribute
from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.secure.in_process import Members

CANARY = 24, 8
"""Tokens of a canary's answer and prompt, drawn at random: no other text makes them likely."""


class Memorised(NamedTuple):
    """Scores of texts and canaries by a final model, and those by the base model's loss alone."""

    texts: Scores
    canaries: Scores
    prior: Scores


def train_and_test(
    spec: ExperimentSpec, row: Row, texts: Sequence[Encoded], vocabulary: int, rounds: int, say: Callable[[str], None]
) -> Memorised:
    """Trains on half of the texts and on half of as many canaries, both drawn by coins, and tests all of them.

    Each of the row's sites passes once over its examples in a round.
    """
    rng = np.random.default_rng(spec.seed)
    canaries = random_texts(rng, len(texts), vocabulary)
    candidates = [*texts, *canaries]
    inside = rng.random(len(candidates)) < 0.5
    members = [text for text, chosen in zip(candidates, inside, strict=True) if chosen]
    members = [members[place] for place in rng.permutation(len(members)).tolist()]
    names = sampling.client_names(row.sites)
    shards = {name: ClientData(members[site :: row.sites], 0) for site, name in enumerate(names)}
    steps = max(1, len(members) // row.sites // BATCH)
    replica = Replica.load(row_spec(spec, row, steps, row.sites, rounds))
    before = losses(replica, candidates)
    sums = Members(LEAST, COLLUDERS)
    for number in range(1, rounds + 1):
        tasks = sampling.round_tasks(replica.spec, SIMULATION, number, names, replica.digest)
        sealed = {
            task.participant: contribute(replica, Client(task, shards[task.participant])).sealed for task in tasks
        }
        if row.masked:
            sealed = {"": sum_in_process(replica, sums, tasks[0], 1, names, sealed).sealed}
        replica.apply(replica.aggregate(list(sealed.values())))
        replica.update_digest()
    drop = before - losses(replica, candidates)
    lower = drop[inside].mean(), drop[~inside].mean()
    say(f"{rounds} rounds lower the loss on members by {lower[0]:.3g}, on others by {lower[1]:.3g}")
    half = len(texts)
    return Memorised(
        one_target(drop[:half], inside[:half]),
        one_target(drop[half:], inside[half:]),
        one_target(-before[:half], inside[:half]),
    )


def random_texts(rng: np.random.Generator, count: int, vocabulary: int) -> list[Encoded]:
    """Returns texts of tokens drawn uniformly from the vocabulary."""
    answer, prompt = CANARY
    tokens = rng.integers(3, vocabulary, size=(count, answer + prompt)).tolist()
    return [Encoded(each[:prompt], each[prompt:]) for each in tokens]


def losses(replica: Replica, texts: Sequence[Encoded]) -> Reals:
    """Returns the mean loss of each text's response tokens, in nats, fp64 (texts,)."""
    replica.model.eval()
    return np.array([attack.mean_loss(replica.model, text) for text in texts])
