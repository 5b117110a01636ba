"""Ferret: first-order local updates, sent as a seed and the coordinates of the update on random bases.

Shu et al., "Ferret: Federated Full-Parameter Tuning at Scale for Large Language Models", ICML 2025, Algorithm 1, with
block-wise projection (§3.2, equations 6 to 8) and coordinates in unbiased units.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ                        (Step 2: local updates)
            Δᵢ = w − wᵢ; K_l from the allocation rule; seed sᵢ fresh every round
            send sᵢ and γᵢ,l = (ρ_l K_l)⁻¹ V_lᵀ Δᵢ,l for every block l              (Step 3: projected updates)
        w ← w − a · Σᵢ nᵢ (Σ_l V_l(sᵢ) γᵢ,l) / Σᵢ nᵢ                               (Step 1: global aggregation)

nᵢ is 1, as in the paper, or i's number of examples.

With separate seeds the noise of the reconstruction averages out. With a shared seed coordinates add up, and one
reconstruction serves all participants.

With ``allocation = "curvature"`` K_l ∝ ‖Δᵢ,l‖·√tr(H_l), estimated by i from the squared norms of its gradients.

Where paper and published code differ: seeds are fresh per participant and round (paper; the code keeps one pool), K = Σ
K_l exactly (paper; the code caps each block), and a = 1 is the unbiased update (the code's scale is a third).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms._dense import rounding_of
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs.ferret import Config, whole
from ferret_core.models.parameters import shapes, trainable
from ferret_core.projection import FORMAT_VERSION, quantize
from ferret_core.projection.allocation import FIXED
from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block
from ferret_core.projection.coordinate_encoding import Kind
from ferret_core.projection.project import Projected, norms, project, squared_lengths
from ferret_core.protocol.wire import Array, Arrays, Contribution


class Algorithm(FullModelMixin):
    """Averages seeds and coordinates."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.basis = basis(config.basis)

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns the positions of the blocks sent whole; raises ``spec.invalid`` for too small a budget."""
        blocks = self.config.cut(shapes(model))
        self.config.fixed(blocks)
        return {"whole": np.array(whole(blocks), dtype=np.int32)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        config, task, blocks = self.config, client.task, self.config.cut(shapes(model))
        with client.working_copy(model, config.local) as before:
            curvatures = _Curvatures(model, blocks) if config.watches_steps else None
            trained = client.train(model, config.local, curvatures.see if curvatures else None)
            after = trainable(model)
            fixed = config.allocation in FIXED
            steep = curvatures.found if curvatures else None
            K = config.fixed(blocks) if fixed else config.allocate(norms(before, after, blocks), blocks, steep)
            seed = config.seed_for(task)
            projected = project(before, after, blocks, self.basis, K, seed)
        gammas = _protected(projected.coordinates, client)
        arrays = quantize.quantize(gammas, config.coordinates, task.seed, whole(blocks), config.room(blocks, K))
        fields = {"projection": FORMAT_VERSION, "seed": seed, "K": K}
        return LocalUpdate(arrays, trained.metrics, basis_fields=fields)

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        received = list(contributions)
        if self.config.seeds == "shared":
            return _sum_of(received, self.config.coordinates, state["whole"].tolist())
        return _side_by_side(received)

    def coordinates(self, state: State, contribution: Contribution) -> Arrays:
        """Returns the coordinates; requires a shared seed and equal K_l."""
        gamma = torch.cat([*_coordinates(contribution, self.config.coordinates, state["whole"].tolist())])
        return {"coordinates": gamma.numpy()}

    def centred(self, first: Contribution, centre: Arrays, count: int) -> Arrays:
        return _as_one(Weighted(1.0, first), centre["coordinates"])

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        kind = "float32" if self.config.seeds == "shared" else self.config.coordinates
        terms = _terms(result, kind, state["whole"].tolist(), rate)
        blocks = self.config.cut(shapes(model))
        reconstruct_(trainable(model), blocks, self.basis, terms, int(result["rounding"][0]))
        return state


class _Curvatures:
    """Steepness of the loss in each block: Σ_t ‖g_l,t‖² over the local steps.

    This is proportional to the trace of the empirical Fisher information.
    """

    def __init__(self, model: nn.Module, blocks: Sequence[Block]) -> None:
        self._parameters = trainable(model)
        self._blocks = blocks
        self.found = [0.0] * len(blocks)

    def see(self) -> None:
        """Adds the gradients of one step, without changing them."""
        gradients = {
            name: torch.zeros_like(weight) if weight.grad is None else weight.grad
            for name, weight in self._parameters.items()
        }
        squares = squared_lengths(gradients, self._blocks)
        self.found = [before + square for before, square in zip(self.found, squares, strict=True)]


def _protected(gammas: Sequence[torch.Tensor], client: Client) -> Sequence[torch.Tensor]:
    """Protects the coordinates of all blocks as one vector, and splits it into blocks again."""
    lengths = [len(gamma) for gamma in gammas]
    return torch.from_numpy(client.protected(torch.cat([gamma.cpu() for gamma in gammas]).numpy())).split(lengths)


def _side_by_side(received: Sequence[Weighted]) -> Arrays:
    """Concatenates all participants' coordinates, still quantised, and adds their lengths."""
    result = _identity(received)
    for name in received[0].contribution.arrays:
        parts = [sent.contribution.arrays[name] for sent in received]
        result[name] = np.concatenate(parts)
        result[f"{name}.lengths"] = np.array([len(part) for part in parts], dtype=np.int32)
    return result


def _sum_of(received: Sequence[Weighted], kind: Kind, whole: Sequence[int]) -> Arrays:
    """Averages coordinates under a shared seed and equal K_l into one vector for all participants."""
    total = sum(sent.pull * torch.cat([*_coordinates(sent.contribution, kind, whole)]) for sent in received)
    total /= sum(sent.weight for sent in received)
    return _as_one(received[0], torch.as_tensor(total).numpy())


def _as_one(first: Weighted, coordinates: Array) -> Arrays:
    """Returns a result with one coordinate vector for all participants."""
    lengths = np.array([len(coordinates)], dtype=np.int32)
    return {**_identity([first._replace(factor=1.0)]), "coordinates": coordinates, "coordinates.lengths": lengths}


def _identity(received: Sequence[Weighted]) -> dict[str, Array]:
    """Returns the seeds of the columns, the weights, and the clipping factors if any participant is clipped."""
    metas = [sent.contribution.meta for sent in received]
    clipped = any(sent.factor != 1 for sent in received)
    factors = {"factors": np.array([sent.factor for sent in received], dtype=np.float32)} if clipped else {}
    return {
        "seeds": np.array([meta.seed for meta in metas], dtype=np.uint64),
        "K": np.array([meta.K for meta in metas], dtype=np.int32),
        "weights": np.array([sent.weight for sent in received], dtype=np.float32),
        "rounding": rounding_of(received[0].contribution),
        **factors,
    }


def _coordinates(received: Contribution, kind: Kind, whole: Sequence[int]) -> Sequence[torch.Tensor]:
    return quantize.dequantize(received.arrays, kind, received.meta.K or (), whole)


def _terms(result: Arrays, kind: Kind, whole: Sequence[int], rate: float) -> list[Projected]:
    """Returns one reconstruction per seed: its coordinates per block, already multiplied by rate and weight."""
    lengths = {name: np.cumsum(result[f"{name}.lengths"])[:-1] for name in result if f"{name}.lengths" in result}
    parts = {name: np.split(result[name], cuts) for name, cuts in lengths.items()}
    weights = result["weights"].tolist()
    factors = result["factors"].tolist() if "factors" in result else [1.0] * len(weights)
    steps = [rate * weight * factor / sum(weights) for weight, factor in zip(weights, factors, strict=True)]
    rows = zip(result["seeds"].tolist(), result["K"].tolist(), steps, strict=True)
    return [
        Projected(seed, quantize.dequantize(_of(parts, i), kind, K, whole, step))
        for i, (seed, K, step) in enumerate(rows)
    ]


def _of(parts: Mapping[str, Sequence[Array]], participant: int) -> Arrays:
    return {name: part[participant] for name, part in parts.items()}
