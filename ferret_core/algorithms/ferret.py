"""Ferret: first-order local updates, sent as a seed and the coordinates of the update on random bases.

Shu et al., "Ferret: Federated Full-Parameter Tuning at Scale for Large Language Models", ICML 2025, Algorithm 1,
with block-wise projection (§3.2, equations 6 to 8) and coordinates in unbiased units.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ                        (Step 2: local updates)
            Δᵢ = w − wᵢ; K_l from the allocation rule; seed sᵢ fresh every round
            send sᵢ and γᵢ,l = (ρ_l K_l)⁻¹ V_lᵀ Δᵢ,l for every block l              (Step 3: projected updates)
        w ← w − a · Σᵢ nᵢ (Σ_l V_l(sᵢ) γᵢ,l) / Σᵢ nᵢ                               (Step 1: global aggregation)

nᵢ is 1, as in the paper, or i's number of examples.

Own seeds average the noise of the reconstruction. Under a shared one coordinates add up, and one reconstruction does
for all. Disjoint participants share one too, but each takes other rows of it, as long as there are enough: N·K_l ≤ d_l.

Where paper and published code differ: seeds are fresh per participant and round (paper; the code keeps one pool),
K = Σ K_l exactly (paper; the code caps each block), and a = 1 is the unbiased update (the code's scale is a third).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self, cast

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import nn

from ferret_core.algorithms._base import Client, LocalUpdate, State, Weighted, local_update
from ferret_core.algorithms._dense import rounding_of
from ferret_core.models.parameters import Shapes, shapes, sizes, trainable, working_copy
from ferret_core.projection import FORMAT_VERSION, quantize
from ferret_core.projection.allocation import FIXED, AllocationRule, split
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block, BlockRule, cut
from ferret_core.projection.budget import coordinates_within
from ferret_core.projection.project import Projected, apply_, norms, project
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Array, Arrays, Contribution, malformed
from ferret_core.training.local import LocalConfig

DEFAULT_BYTES = 8192
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"basis": "T", "K": 4096, "allocation": "norm", "coordinates": "float16", "blocks": "grouped"}
}


class Config(Strict):
    """Ferret's options. The default sends 8 kB: some 60,000 one-bit coordinates."""

    preset: Literal["paper"] | None = Field(
        default=None, description="paper: basis T, K = 4096 in fp16, allocation and blocks as there; others win over it"
    )
    bytes_per_round: int | None = Field(
        default=None, ge=1, description="Bytes per participant and round, filled with coordinates; 8192 without K"
    )
    K: int | None = Field(default=None, ge=1, description="Coordinates over all blocks, instead of bytes_per_round")
    basis: Literal["G", "H", "R", "T"] = Field(
        default="G",
        description="G: signed buckets, cost independent of K; H: Hadamard rows; R: dense signs; T: the paper's",
    )
    blocks: BlockRule = Field(
        default="tensor", description="One per tensor, grouped as the authors do, or a number of equal ones"
    )
    whole_up_to: int = Field(default=0, ge=0, description="Blocks of at most so many elements are sent whole")
    allocation: AllocationRule = Field(
        default="norm", description="How K is split over the blocks; uniform and fixed do not look at the update"
    )
    coordinates: quantize.Kind = Field(default="sign", description="How a coordinate travels")
    seeds: Literal["own", "shared", "disjoint"] = Field(
        default="own",
        description="own: noise averages out; shared: coordinates add up; disjoint: one seed, other rows (basis H); "
        "the last two need uniform or fixed allocation",
    )
    local: LocalConfig = LocalConfig()

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, options: Any) -> Any:
        """Writes the preset and the budget out, so that a stored specification says what was run."""
        if not isinstance(options, Mapping):
            return options
        given = {name: value for name, value in cast(Mapping[str, Any], options).items() if value is not None}
        filled = {**PRESETS.get(str(given.get("preset")), {}), **given}
        if "bytes_per_round" in given and "K" not in given:
            filled.pop("K", None)
        return filled if "K" in filled else {"bytes_per_round": DEFAULT_BYTES, **filled}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.K is not None and self.bytes_per_round is not None:
            raise ValueError(f"K = {self.K} and bytes_per_round = {self.bytes_per_round} exclude each other: give one")
        if self.seeds != "own" and self.allocation not in FIXED:
            raise ValueError(
                f"seeds = {self.seeds!r} needs allocation = 'uniform' or 'fixed', the same K_l for all participants, "
                f"not {self.allocation!r}"
            )
        if self.seeds == "disjoint" and self.basis != "H":
            raise ValueError(f"seeds = 'disjoint' needs basis = 'H', not {self.basis!r}: only it has rows to divide")
        return self


class Algorithm:
    """Seeds and coordinates, averaged."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.basis = basis(config.basis)

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        return model

    def init_state(self, model: nn.Module, seed: int) -> State:
        """The positions of the blocks sent whole; raises ``spec.invalid`` for a budget too small for this model."""
        blocks = self._blocks(shapes(model))
        self._fixed(blocks)
        return {"whole": np.array(_whole(blocks), dtype=np.int32)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        config, task, blocks = self.config, client.task, self._blocks(shapes(model))
        with working_copy(model) as before:
            trained = client.train(model, config.local)
            after = trainable(model)
            fixed = config.allocation in FIXED
            K = self._fixed(blocks) if fixed else self._allocate(norms(before, after, blocks), blocks)
            projected = project(before, after, blocks, self.basis, K, self._seed(task), self._share(task))
        arrays = quantize.quantize(projected.coordinates, config.coordinates, task.seed, _whole(blocks))
        return local_update(
            client,
            "ferret",
            arrays,
            metrics=trained.metrics,
            projection=FORMAT_VERSION,
            seed=projected.seed,
            share=projected.share,
            K=K,
        )

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        meta, blocks = contribution.meta, self._blocks(shapes)
        expected = {"projection": FORMAT_VERSION, "seed": self._seed(task), "share": self._share(task)}
        for field, value in expected.items():
            if getattr(meta, field) != value:
                raise malformed(f"metadata.{field}", getattr(meta, field), f"expected {value}")
        _check_counts(meta.K or (), blocks)
        K = list(meta.K or ())
        if sum(K) != self._total(blocks):
            raise malformed("K", sum(K), f"expected {self._total(blocks)} coordinates in all")
        if self.config.allocation in FIXED and self._fixed(blocks) != K:
            raise malformed("K", str(K)[:80], f"is not the {self.config.allocation} allocation that all must have")
        quantize.dequantize(contribution.arrays, self.config.coordinates, K, _whole(blocks))

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        received = list(contributions)
        if self.config.seeds == "shared":
            return _sum_of(received, self.config.coordinates, state["whole"].tolist())
        return _side_by_side(received)

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        kind = "float32" if self.config.seeds == "shared" else self.config.coordinates
        terms = _terms(result, kind, state["whole"].tolist(), rate)
        apply_(trainable(model), self._blocks(shapes(model)), self.basis, terms, int(result["rounding"][0]))
        return state

    def _blocks(self, shapes: Shapes) -> list[Block]:
        return cut(sizes(shapes), self.config.blocks, self.config.whole_up_to)

    def _total(self, blocks: Sequence[Block]) -> int:
        """K: as given, or as much as the bytes hold; never more than the model has elements."""
        if self.config.K is not None:
            return min(self.config.K, sum(block.size for block in blocks))
        return coordinates_within(self.config.bytes_per_round or DEFAULT_BYTES, self.config.coordinates, blocks)

    def _allocate(self, norms: Sequence[float], blocks: Sequence[Block]) -> list[int]:
        return split(self.config.allocation, self._total(blocks), norms, blocks)

    def _fixed(self, blocks: Sequence[Block]) -> list[int]:
        """The allocation of an update that nothing is known of."""
        return self._allocate([0.0] * len(blocks), blocks)

    def _seed(self, task: RoundTask) -> int:
        return task.seed if self.config.seeds == "own" else task.round_seed

    def _share(self, task: RoundTask) -> int:
        return task.rank if self.config.seeds == "disjoint" else 0


def _whole(blocks: Sequence[Block]) -> list[int]:
    return [block.id for block in blocks if block.whole]


def _check_counts(K: Sequence[int], blocks: Sequence[Block]) -> None:
    if len(K) != len(blocks):
        raise malformed("K", len(K), f"expected one number for each of {len(blocks)} blocks")
    for block, count in zip(blocks, K, strict=True):
        if not (block.size if block.whole else 0) <= count <= block.size:
            allowed = f"must be {block.size}" if block.whole else f"must lie between 0 and {block.size}"
            raise malformed(f"K of {block.name}", count, allowed)


def _side_by_side(received: Sequence[Weighted]) -> Arrays:
    """Every participant's coordinates, still quantised, one after the other with their lengths."""
    result = _identity(received)
    for name in received[0].contribution.arrays:
        parts = [one.arrays[name] for _, one in received]
        result[name] = np.concatenate(parts)
        result[f"{name}.lengths"] = np.array([len(part) for part in parts], dtype=np.int32)
    return result


def _sum_of(received: Sequence[Weighted], kind: quantize.Kind, whole: Sequence[int]) -> Arrays:
    """A shared seed and equal K_l: one mean coordinate vector stands for all participants."""
    total = sum(weight * torch.cat(_coordinates(one, kind, whole)) for weight, one in received)
    total /= sum(weight for weight, _ in received)
    coordinates = torch.as_tensor(total).numpy()
    lengths = np.array([len(coordinates)], dtype=np.int32)
    return {**_identity(received[:1]), "coordinates": coordinates, "coordinates.lengths": lengths}


def _identity(received: Sequence[Weighted]) -> dict[str, Array]:
    """Whose columns the coordinates stand for, and what they weigh."""
    return {
        "seeds": np.array([one.meta.seed for _, one in received], dtype=np.uint64),
        "shares": np.array([one.meta.share for _, one in received], dtype=np.int32),
        "K": np.array([one.meta.K for _, one in received], dtype=np.int32),
        "weights": np.array([weight for weight, _ in received], dtype=np.float32),
        "rounding": rounding_of(received[0].contribution),
    }


def _coordinates(received: Contribution, kind: quantize.Kind, whole: Sequence[int]) -> list[torch.Tensor]:
    return quantize.dequantize(received.arrays, kind, received.meta.K or (), whole)


def _terms(result: Arrays, kind: quantize.Kind, whole: Sequence[int], rate: float) -> list[Projected]:
    """One reconstruction for each seed: its coordinates per block, already multiplied by rate and weight."""
    lengths = {name: np.cumsum(result[f"{name}.lengths"])[:-1] for name in result if f"{name}.lengths" in result}
    parts = {name: np.split(result[name], cuts) for name, cuts in lengths.items()}
    weights = result["weights"].tolist()
    steps = [rate * weight / sum(weights) for weight in weights]
    rows = zip(result["seeds"].tolist(), result["K"].tolist(), result["shares"].tolist(), steps, strict=True)
    return [
        Projected(seed, [step * gamma for gamma in quantize.dequantize(_of(parts, i), kind, K, whole)], share)
        for i, (seed, K, share, step) in enumerate(rows)
    ]


def _of(parts: Mapping[str, Sequence[Array]], participant: int) -> Arrays:
    return {name: part[participant] for name, part in parts.items()}
