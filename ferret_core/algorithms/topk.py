"""Top-K: participants send the largest entries of their updates, and keep the rest until next time.

Stich et al., "Sparsified SGD with Memory", NeurIPS 2018, https://arxiv.org/abs/1809.07599, and Aji and Heafield,
"Sparse Communication for Distributed Gradient Descent", EMNLP 2017, https://arxiv.org/abs/1704.05021.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            mᵢ ← w − wᵢ + eᵢ                            (eᵢ: its error memory, 0 at first)
            send Iᵢ, the indices of the K largest |mᵢ|, and vᵢ, the values there, quantised
            eᵢ ← mᵢ, less vᵢ at Iᵢ
        w ← w − a · Σᵢ nᵢ scatter(Iᵢ, vᵢ) / Σᵢ nᵢ       (nᵢ: i's examples, or 1)

The K largest are those of the whole model. The result has the indices that anybody sent, at most N·K.

Where the papers and this differ: they sparsify every gradient of SGD, this what T local steps have moved. They send
32 bits for each value and index; here values travel as Ferret's coordinates do, in 16 bits unless said otherwise, and
what that loses stays in the memory; indices take about 2 + log₂(d/K) bits. A participant that is not sampled keeps its
memory until it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, Self, cast

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import nn

from ferret_core.algorithms._base import Client, LocalUpdate, State, Weighted, local_update
from ferret_core.algorithms._compressed import (
    check_layouts,
    index_layouts,
    largest,
    pack_indices,
    scattered,
    size_of,
    unpack_indices,
    with_error,
)
from ferret_core.algorithms._dense import apply_dense, dense_update, rounding_of
from ferret_core.models.parameters import Shapes, shapes, sizes, working_copy
from ferret_core.projection import quantize
from ferret_core.projection.quantize import Layout
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.training.local import LocalConfig

DEFAULT_FRACTION = 0.01


class Config(Strict):
    """Top-K's options; of ``fraction``, ``K`` and ``bytes_per_round`` one is given, or none."""

    fraction: float | None = Field(
        default=None, gt=0, le=1, description="K as a share of the parameters; 0.01 without K and bytes_per_round"
    )
    K: int | None = Field(default=None, ge=1, description="Entries sent, instead of fraction")
    bytes_per_round: int | None = Field(
        default=None, ge=1, description="Bytes per participant and round, filled with entries, instead of fraction"
    )
    coordinates: quantize.Kind = Field(default="float16", description="How a value travels")
    local: LocalConfig = LocalConfig()

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, options: Any) -> Any:
        """Writes the default fraction out, so that a stored specification says what was run."""
        if not isinstance(options, Mapping):
            return options
        given = {name: value for name, value in cast(Mapping[str, Any], options).items() if value is not None}
        return given if {"fraction", "K", "bytes_per_round"} & set(given) else {**given, "fraction": DEFAULT_FRACTION}

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        given = {name: getattr(self, name) for name in ("fraction", "K", "bytes_per_round")}
        said = [f"{name} = {value}" for name, value in given.items() if value is not None]
        if len(said) > 1:
            raise ValueError(f"{' and '.join(said)} exclude each other: give one")
        return self


class Algorithm:
    """Sparse updates with error feedback, averaged."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        return model

    def init_state(self, model: nn.Module, seed: int) -> State:
        """The number of parameters d; raises ``spec.invalid`` for a budget that not one entry fits into."""
        d = _count(shapes(model))
        self._entries(d)
        return {"parameters": np.array([d], np.uint64)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        with working_copy(model) as before:
            trained = client.train(model, self.config.local)
            update = with_error(dense_update(before, model), client.memory)
        d, K = len(update), self._entries(len(update))
        indices = largest(update, K)
        values = quantize.quantize([torch.from_numpy(update[indices])], self.config.coordinates, client.task.seed)
        update[indices] -= self._values(values, K)
        arrays = {**pack_indices(indices, d), **values}
        return local_update(client, "topk", arrays, metrics=trained.metrics, memory={"error": update})

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        d = _count(shapes)
        K = self._entries(d)
        check_layouts(contribution.arrays, self._layouts(K, d))
        unpack_indices(contribution.arrays, K, d)
        self._values(contribution.arrays, K)

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        d = int(state["parameters"][0])
        K = self._entries(d)
        received = list(contributions)
        indices = np.concatenate([unpack_indices(one.arrays, K, d) for _, one in received])
        values = np.concatenate([weight * self._values(one.arrays, K).astype(np.float64) for weight, one in received])
        union, places = np.unique(indices, return_inverse=True)
        mean = np.bincount(places, values) / sum(weight for weight, _ in received)
        rounding = rounding_of(received[0].contribution)
        return {**pack_indices(union, d), "values": mean.astype(np.float32), "rounding": rounding}

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        d, values = int(state["parameters"][0]), result["values"]
        update = scattered(unpack_indices(result, len(values), d), values, d)
        apply_dense(model, update, rate, int(result["rounding"][0]))
        return state

    def _entries(self, d: int) -> int:
        """K: as given, or as much as the bytes hold; never more than the model has parameters."""
        config = self.config
        if config.bytes_per_round is None:
            return min(config.K or max(1, round((config.fraction or DEFAULT_FRACTION) * d)), d)
        fitting = bisect_right(range(1, d + 1), config.bytes_per_round, key=lambda K: size_of(self._layouts(K, d)))
        if fitting == 0:
            reason = f"the smallest possible is {size_of(self._layouts(1, d))} for {d} parameters"
            raise FerretError.of_field("spec.invalid", "bytes_per_round", config.bytes_per_round, reason)
        return fitting

    def _layouts(self, K: int, d: int) -> dict[str, Layout]:
        return {**index_layouts(K, d), **quantize.layouts(self.config.coordinates, K, 0, 1)}

    def _values(self, arrays: Arrays, K: int) -> Array:
        """fp32 (K,): the values in a contribution's arrays; raises as ``quantize.dequantize``."""
        kind = self.config.coordinates
        sent = {name: arrays[name] for name in quantize.layouts(kind, K, 0, 1)}
        return quantize.dequantize(sent, kind, [K])[0].numpy()


def _count(shapes: Shapes) -> int:
    return sum(sizes(shapes).values())
