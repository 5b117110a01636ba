"""Poisoned contributions, and participants that send them."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from ferret_core.algorithms.base import Client
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.contribution import open_contribution
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array, Contribution
from ferret_core.replica.replica import Replica

Attack = Callable[[Contribution], Contribution]
Participate = Callable[[Replica, Client], LocalRound]

DEVIATIONS = 1.5
SIGNS = "coordinates"


def sign_flip(sent: Contribution) -> Contribution:
    """Returns the update with its sign flipped, at the same length."""
    arrays = {name: -array if array.dtype == np.float32 else array for name, array in sent.arrays.items()}
    if SIGNS in arrays and arrays[SIGNS].dtype == np.uint8:
        arrays[SIGNS] = np.packbits(1 - np.unpackbits(arrays[SIGNS], count=sum(sent.meta.K or ())))
    return Contribution(sent.meta, arrays)


def noise(sent: Contribution) -> Contribution:
    """Returns random numbers with the update's scales, different for each participant and round."""
    draws = np.random.default_rng([sent.meta.round, *sent.meta.participant.encode()])
    arrays = dict(sent.arrays)
    for name, array in sent.arrays.items():
        if array.dtype == np.float32:
            arrays[name] = draws.normal(0, array.std(), array.shape).astype(np.float32)
    if arrays.get(SIGNS, np.zeros(0)).dtype == np.uint8:
        bits = draws.integers(0, 2, sum(sent.meta.K or ()), dtype=np.uint8)
        arrays[SIGNS] = np.packbits(bits)
    return Contribution(sent.meta, arrays)


def absent(names: Collection[str]) -> Participate:
    """Removes the contributions of ``names``."""

    def participate(replica: Replica, client: Client) -> LocalRound:
        if client.task.participant in names:
            raise FerretError("training.non_finite", f"{client.task.participant} does not take part")
        return contribute(replica, client)

    return participate


def poisoned(names: Collection[str], attack: Attack) -> Participate:
    """Applies ``attack`` to the contributions of ``names``."""

    def participate(replica: Replica, client: Client) -> LocalRound:
        part = contribute(replica, client)
        return _resealed(replica, client, part, attack) if client.task.participant in names else part

    return participate


def a_little(names: Collection[str]) -> Participate:
    """Sends the same update from all colluders, who know all other contributions of the previous round: their mean
    minus ``DEVIATIONS`` standard deviations, in every coordinate. Only whole updates are comparable by coordinate.

    Baruch et al., "A Little Is Enough: Circumventing Defenses For Distributed Learning", NeurIPS 2019,
    https://arxiv.org/abs/1902.06156.
    """
    before: list[Array] = []
    now: list[Array] = []
    current = 0

    def participate(replica: Replica, client: Client) -> LocalRound:
        nonlocal current, before, now
        if client.task.round != current:
            current, before, now = client.task.round, now, []
        part = contribute(replica, client)
        if client.task.participant not in names:
            now.append(part.sealed.contribution.arrays["update"])
            return part
        if not before:
            return part
        others = np.stack(before)
        crafted = others.mean(axis=0) - DEVIATIONS * others.std(axis=0)
        return _resealed(replica, client, part, lambda sent: Contribution(sent.meta, {"update": crafted}))

    return participate


def _resealed(replica: Replica, client: Client, part: LocalRound, attack: Attack) -> LocalRound:
    blob = attack(part.sealed.contribution).encode()
    return part._replace(sealed=open_contribution(blob, replica.experiment, client.task, replica.shapes))
