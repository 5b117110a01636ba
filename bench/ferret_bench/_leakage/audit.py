"""The audit of record-level privacy: canaries at several sites, and the sums of all rounds.

The attacker has every model and every noised sum, and knows the canaries, but not the coins that put them in. A canary
x scores

    Σ_r ⟨(I − QQᵀ) s_r, v_r(x)⟩

with s (K,) the sum of round r, v (K,) the canary's integers at that round's model, and Q an orthonormal basis of the
integers of canaries that no site has: all canaries have much in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, final

import numpy as np

from ferret_bench._leakage import attack
from ferret_bench._leakage.final_model import losses, random_texts
from ferret_bench._leakage.power import DELTA, Reals, Scores, one_target
from ferret_bench._leakage.rounds import COLLUDERS, LEAST
from ferret_core import catalog
from ferret_core.aggregation.masked_sum import sum_in_process
from ferret_core.algorithms.base import Client
from ferret_core.client.local_round import contribute
from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.privacy.lattice import Integers
from ferret_core.privacy.mechanism import RecordMechanism, RecordPrivacy, calibrated
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.secure.in_process import Members
from ferret_core.training.privacy import ReleasePolicy

K = 5000
"""Coordinates of a sum: about 8 kB."""
RATE = 0.1
"""Length of a step, if all gradients agree."""
DRAWN = 0.5
"""The chance that a canary is drawn in a round."""
PROMISED = 0.4
"""Each site's promised records, as a part of its candidates. Half of them are in, so no site has fewer."""


class AuditSizes(NamedTuple):
    """Numbers of canaries that coins put into a site or leave out, of others for the attacker, sites and rounds."""

    canaries: int = 1000
    public: int = 256
    sites: int = 5
    rounds: int = 6

    @property
    def promised(self) -> int:
        """The records that each site promises to have."""
        return int(PROMISED * self.canaries / self.sites)


class Audit(NamedTuple):
    """Scores of the canaries by the ``sums``, and by the drop of the loss in the ``final`` model; noise multiplier."""

    sums: Scores
    final: Scores
    noise_multiplier: float


class WithoutNoise(RecordPrivacy):
    """Draws and clips records, and adds no noise to their sum."""

    __slots__ = ()

    def noised(self, total: Integers) -> Integers:
        return total


@final
class Alone(WithoutNoise):
    """Draws all units."""

    __slots__ = ()

    def draw(self) -> list[Sequence[int]]:
        return list(self.units)


def audit(
    spec: ExperimentSpec,
    epsilon: float,
    sizes: AuditSizes,
    say: Callable[[str], None],
    *,
    noise: bool = True,
) -> Audit:
    """Runs rounds under the mechanism for ``epsilon``, with ``noise`` or with everything but the noise.

    Raises ``privacy.meaningless`` for noise that leaves nothing to learn.
    """
    replica, rng = Replica.load(_protected(spec, epsilon, sizes)), np.random.default_rng(spec.seed)
    vocabulary = attack.vocabulary(replica.model)
    public, candidates = (random_texts(rng, count, vocabulary) for count in (sizes.public, sizes.canaries))
    inside = rng.random(sizes.canaries) < 0.5
    members = [text for text, chosen in zip(candidates, inside, strict=True) if chosen]
    names = sampling.client_names(sizes.sites)
    mechanism, kind = RecordMechanism.of(replica.spec, sizes.sites), RecordPrivacy if noise else WithoutNoise
    sums, scores, before = Members(LEAST, COLLUDERS), np.zeros(sizes.canaries), losses(replica, candidates)
    for number in range(1, sizes.rounds + 1):
        tasks = sampling.round_tasks(replica.spec, SIMULATION, number, names, replica.digest)
        shards = [members[site :: sizes.sites] for site in range(sizes.sites)]
        sealed = {
            task.participant: contribute(replica, _client(task, shard, kind(mechanism, _units(shard)))).sealed
            for task, shard in zip(tasks, shards, strict=True)
        }
        total = sum(each.contribution.arrays["coordinates"].astype(np.float64) for each in sealed.values())
        common, _ = np.linalg.qr(_integers(replica, tasks[0], public, mechanism).T)
        scores += _integers(replica, tasks[0], candidates, mechanism) @ (total - common @ (common.T @ total))
        replica.apply(replica.aggregate([sum_in_process(replica, sums, tasks[0], 1, names, sealed).sealed]))
        replica.update_digest()
        say(f"audit at ε = {epsilon:g}{'' if noise else ', noise removed'}: round {number} of {sizes.rounds}")
    drop = before - losses(replica, candidates)
    return Audit(one_target(scores, inside), one_target(drop, inside), mechanism.noise_multiplier)


def _protected(spec: ExperimentSpec, epsilon: float, sizes: AuditSizes) -> ExperimentSpec:
    """Returns ``spec`` with protected records, calibrated."""
    tree = spec.model_dump(mode="json")
    local = {"optimizer": "normalized", "learning_rate": RATE, "steps": 1, "batch_size": 1, "accumulation": 1}
    ferret = {"name": "ferret", "K": K, "seeds": "shared", "allocation": "fixed", "coordinates": "float32"}
    tree["algorithm"] = ferret | {"refuse_noisy_rounds": False, "local": local}
    tree["privacy"] = {
        "unit": "example",
        "epsilon": epsilon,
        "delta": DELTA,
        "batch": int(DRAWN * sizes.promised),
        "records_least": sizes.promised,
    }
    tree["secure"] |= {"aggregation": "masked", "least": LEAST, "colluders": COLLUDERS}
    tree["rounds"] = sizes.rounds
    tree["participants"] |= {"simulated": sizes.sites, "edge": 0, "fraction": 1.0}
    tree["server"] |= {"step_guard": False, "weights": "equal"}
    return calibrated(catalog.resolve(ExperimentSpec.model_validate(tree)).spec, sizes.sites)


def _client(task: RoundTask, texts: Sequence[Encoded], record: RecordPrivacy) -> Client:
    """Returns the client of a site with ``texts``, each a unit."""
    return Client(
        task, ClientData(texts, 0), record=record, discretion=ReleasePolicy(metrics=frozenset(), examples=False)
    )


def _units(texts: Sequence[Encoded]) -> list[list[int]]:
    return [[place] for place in range(len(texts))]


def _integers(replica: Replica, task: RoundTask, texts: Sequence[Encoded], mechanism: RecordMechanism) -> Reals:
    """Returns the integers of each text as a unit, fp64 (texts, K)."""
    alone = [Alone(mechanism, [[place]]) for place in range(len(texts))]
    found = [contribute(replica, _client(task, texts, record)).sealed.contribution.arrays for record in alone]
    return np.stack([arrays["coordinates"].astype(np.float64) for arrays in found])
