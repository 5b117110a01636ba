"""FetchSGD: participants send count sketches of their updates, and the server finds the largest entries of the sum.

Rothchild et al., "FetchSGD: Communication-Efficient Federated Learning with Sketching", ICML 2020,
https://arxiv.org/abs/2007.07682, Algorithm 1. A sketch is linear: momentum and error memory live in it, at the server,
so that participants need keep nothing.

    u and e, tables of rows × columns, start at 0
    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            send Sᵢ = sketch(w − wᵢ)
        S = Σᵢ nᵢ Sᵢ / Σᵢ nᵢ                           (nᵢ: i's examples, or 1)
        u ← ρ u + S;  e ← e + a u
        Δ = the k entries of largest |estimate(e)|;  w ← w − Δ
        e ← 0 and u ← 0 in the cells that sketch(Δ) hits

The result is S alone: whoever follows the ledger keeps u and e, and finds the same Δ. It takes as many bytes down as a
participant sends up.

Where paper and this differ: the paper sketches one gradient and decays the rate, here it is what T local steps have
moved, at the server's learning rate a. Its Algorithm 1 takes sketch(Δ) off e and leaves u; the authors' code says that
then the model diverges, so it did here, and does as above. ρ comes beside any momentum that ``[server]`` adds: set one
of the two. Columns and k default to the authors' code: 500,000 and 50,000 for its 6.6 million parameters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import numpy as np
from pydantic import Field, model_validator
from torch import nn

from ferret_core.algorithms._base import Client, LocalUpdate, State, Weighted, local_update
from ferret_core.algorithms._compressed import check_layouts, largest, scattered
from ferret_core.algorithms._dense import apply_dense, average, dense_update
from ferret_core.models.parameters import Shapes, shapes, sizes, working_copy
from ferret_core.projection.kernels.cpu.count_sketch import estimates, sketch
from ferret_core.projection.quantize import Layout
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Arrays, Contribution
from ferret_core.training.local import LocalConfig


class Config(Strict):
    """FetchSGD's options; ``columns`` and ``bytes_per_round`` exclude each other."""

    rows: int = Field(default=5, ge=1, le=64, description="Rows of the sketch: an entry is the median over them")
    columns: int | None = Field(
        default=None, ge=1, description="Columns of the sketch; 1/13 of the parameters without bytes_per_round"
    )
    bytes_per_round: int | None = Field(
        default=None, ge=1, description="Bytes per participant and round, 4 for each cell of the sketch"
    )
    k: int | None = Field(
        default=None, ge=1, description="Entries of the model that a round moves; a tenth of the columns by default"
    )
    momentum: float = Field(default=0.9, ge=0, lt=1, description="Momentum ρ over the rounds, in the sketch")
    local: LocalConfig = LocalConfig()

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.columns is not None and self.bytes_per_round is not None:
            raise ValueError(
                f"columns = {self.columns} and bytes_per_round = {self.bytes_per_round} exclude each other: give one"
            )
        return self


class Algorithm:
    """Sketches, averaged; the largest entries of what they add up to."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        return model

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Momentum and error memory, fp32 (rows, columns); and the seed of all hashes, uint64 (1,).

        Raises ``spec.invalid`` for a budget smaller than one column.
        """
        empty = np.zeros((self.config.rows, self._columns(_count(shapes(model)))), np.float32)
        hashes = np.array([derive_seed(seed, "fetchsgd")], np.uint64)
        return {"momentum": empty, "error": empty, "seed": hashes}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        with working_copy(model) as before:
            trained = client.train(model, self.config.local)
            update = dense_update(before, model)
        rows, columns = state["error"].shape
        table = sketch(update, rows, columns, int(state["seed"][0]))
        return local_update(client, "fetchsgd", {"sketch": table}, metrics=trained.metrics)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        shape = self.config.rows, self._columns(_count(shapes))
        check_layouts(contribution.arrays, {"sketch": Layout(np.dtype(np.float32), shape)})

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        return average(contributions, ["sketch"])

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        d, seed = _count(shapes(model)), int(state["seed"][0])
        momentum = np.float32(self.config.momentum) * state["momentum"] + result["sketch"]
        error = state["error"] + np.float32(rate) * momentum
        found = estimates(error, d, seed)
        top = largest(found, self._moved(d))
        update = scattered(top, found[top], d)
        apply_dense(model, update, 1.0, int(result["rounding"][0]))
        rows, columns = error.shape
        missed = sketch(update, rows, columns, seed) == 0
        return {"momentum": momentum * missed, "error": error * missed, "seed": state["seed"]}

    def _columns(self, d: int) -> int:
        config = self.config
        if config.bytes_per_round is None:
            return config.columns or max(1, d // 13)
        columns = config.bytes_per_round // (4 * config.rows)
        if columns == 0:
            reason = f"the smallest possible is {4 * config.rows} for {config.rows} rows"
            raise FerretError.of_field("spec.invalid", "bytes_per_round", config.bytes_per_round, reason)
        return columns

    def _moved(self, d: int) -> int:
        """k; never more than the model has parameters."""
        return min(self.config.k or max(1, self._columns(d) // 10), d)


def _count(shapes: Shapes) -> int:
    return sum(sizes(shapes).values())
