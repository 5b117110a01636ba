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

With ``precision = "pure_bfloat16"`` the weights are rounded after every step, and their difference is mostly rounding.
There γᵢ,l is the sum of the coordinates of i's steps, each in fp32 before it is rounded. K_l must be known before the
first step and follows the norms of i's last round; in i's first round every weight is expected to move alike.

With ``allocation = "curvature"`` K_l ∝ ‖Δᵢ,l‖·√tr(H_l), estimated by i from the squared norms of its gradients.

Where paper and published code differ: seeds are fresh per participant and round (paper; the code keeps one pool), K = Σ
K_l exactly (paper; the code caps each block), and a = 1 is the unbiased update (the code's scale is a third).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms._dense import rounding_of
from ferret_core.algorithms.base import (
    NOTHING,
    Client,
    FullModelMixin,
    LocalUpdate,
    State,
    SummedContributions,
    Weighted,
)
from ferret_core.algorithms.configs.ferret import (
    ALLOCATION,
    Config,
    allocation_array,
    coordinates_of,
    is_mean,
    isometric_factors,
    whole,
)
from ferret_core.models.parameters import shapes, trainable
from ferret_core.models.shapes import Shapes
from ferret_core.privacy.lattice import Integers, to_lattice
from ferret_core.privacy.mechanism import RecordPrivacy
from ferret_core.projection import FORMAT_VERSION, quantize, sign_sums
from ferret_core.projection.allocation import FIXED, counts_of
from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block
from ferret_core.projection.coordinate_encoding import Kind
from ferret_core.projection.project import Projected, norms, project, squared_lengths
from ferret_core.projection.sign_sums import MEAN_SCALES
from ferret_core.projection.step_projection import StepProjection
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.secure import mean_loss
from ferret_core.secure.packing import Segment
from ferret_core.training.unit_gradients import unit_gradients

MOVES = "moves"
"""A participant's memory of ‖Δ_l‖ in its last round, fp32 (L,)."""
UNITS = "units"
"""The state's units of the scales of the next masked sum."""


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
        seed = config.seed_for(task)
        if client.record is not None:
            K = config.fixed(blocks)
            noised = client.record.noised(self._summed_units(model, client, client.record, blocks, K))
            return LocalUpdate(_as_floats(noised), {}, NOTHING, {"projection": FORMAT_VERSION, "seed": seed, "K": K})
        train = self._trained_by_steps if client.rounds_steps(config.local) else self._trained
        trained = train(model, client, blocks)
        K = [len(gamma) for gamma in trained.coordinates]
        gammas = _protected(trained.coordinates, client)
        kind = config.encoding(blocks)
        arrays = quantize.quantize(gammas, kind, task.seed, whole(blocks), config.room(blocks))
        fields: dict[str, Any] = {"projection": FORMAT_VERSION, "seed": seed}
        if kind == "sparse_sign":
            arrays[ALLOCATION] = allocation_array(K, blocks)
        else:
            fields["K"] = K
        return LocalUpdate(arrays, trained.metrics, trained.memory, fields)

    def _trained(self, model: nn.Module, client: Client, blocks: Sequence[Block]) -> _Trained:
        """Projects the difference of the weights after training."""
        config = self.config
        with client.working_copy(model, config.local) as before:
            curvatures = _Curvatures(model, blocks) if config.watches_steps else None
            trained = client.train(model, config.local, curvatures.see if curvatures else None)
            after = trainable(model)
            fixed = config.allocation in FIXED
            steep = curvatures.found if curvatures else None
            K = config.fixed(blocks) if fixed else config.allocate(norms(before, after, blocks), blocks, steep)
            projected = project(before, after, blocks, self.basis, K, config.seed_for(client.task))
        return _Trained(projected.coordinates, trained.metrics)

    def _trained_by_steps(self, model: nn.Module, client: Client, blocks: Sequence[Block]) -> _Trained:
        """Projects each step before it is rounded; K_l follows the norms of the participant's last round."""
        config, seed = self.config, self.config.seed_for(client.task)
        kept = client.memory.get(MOVES)
        expected = config.expected_moves(blocks, len(client.shard)) if kept is None else kept.tolist()
        K = config.allocate(expected, blocks)
        with client.working_copy(model, config.local):
            steps = StepProjection(trainable(model), blocks, self.basis, K, seed)
            trained = client.train(model, config.local, moved=steps.add)
            gammas = [gamma.cpu() for gamma in steps.projected().coordinates]
        found = config.estimated_moves([gamma.numpy() for gamma in gammas], blocks)
        moves = [before if now is None else now for now, before in zip(found, expected, strict=True)]
        memory = NOTHING if config.allocation in FIXED else {MOVES: np.array(moves, np.float32)}
        return _Trained(gammas, trained.metrics, memory)

    def _summed_units(
        self, model: nn.Module, client: Client, record: RecordPrivacy, blocks: Sequence[Block], K: Sequence[int]
    ) -> Integers:
        """Returns the sum (ΣK,) of the integers of the units that the client draws.

        A unit with coordinates that are not finite counts as zero: an error would reveal it.
        """
        record.mechanism.require(sum(K))
        config, seed = self.config, self.config.seed_for(client.task)
        factors = np.repeat(isometric_factors(config.basis, blocks, K), K)
        total = np.zeros(sum(K), np.int64)
        with client.working_copy(model, config.local):
            zeros = _zeros_like(trainable(model))
            for gradients in unit_gradients(model, client.shard, record.draw(), config.local, client.task.data_seed):
                try:
                    projected = project(gradients, zeros, blocks, self.basis, K, seed)
                except FerretError as error:
                    if error.code != "training.non_finite":
                        raise
                    continue
                gamma = torch.cat([gamma.cpu() for gamma in projected.coordinates]).numpy()
                total += to_lattice(gamma * factors)
                if client.on_step is not None:
                    client.on_step(0)  # the number of drawn units is secret
        return total

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        received = list(contributions)
        if self.config.seeds != "shared":
            return _side_by_side(received)
        result = self._sum_of(received, state["whole"].tolist())
        return {**result, **_mean_scales(received)}

    def coordinates(self, state: State, contribution: Contribution) -> Arrays:
        """Returns the coordinates; requires a shared seed and equal K_l."""
        return {"coordinates": self._coordinates(contribution, state["whole"].tolist()).numpy()}

    def centred(self, first: Contribution, centre: Arrays, count: int) -> Arrays:
        return _as_one(Weighted(1.0, first), centre["coordinates"])

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        blocks = self.config.cut(shapes(model))
        kind = "float32" if self.config.seeds == "shared" else self.config.encoding(blocks)
        terms = _terms(result, kind, blocks, rate)
        reconstruct_(trainable(model), blocks, self.basis, terms, int(result["rounding"][0]))
        if MEAN_SCALES not in result:
            return state
        before = state.get(UNITS, result[MEAN_SCALES])
        return {**state, UNITS: np.where(result[MEAN_SCALES] > 0, result[MEAN_SCALES], before)}

    def segments(self, shapes: Shapes) -> Sequence[Segment]:
        blocks = self.config.cut(shapes)
        return sign_sums.segments(self.config.total(blocks), len(blocks))

    def integers(self, state: State, contribution: Contribution, shapes: Shapes) -> Sequence[Array]:
        K, loss = contribution.meta.K or (), contribution.meta.metrics.get("train_loss")
        return sign_sums.integers(contribution.arrays, K, self._units(state, shapes), loss)

    def mean(self, state: State, sums: Sequence[Array], count: int, shapes: Shapes) -> SummedContributions:
        K = self.config.fixed(self.config.cut(shapes))
        arrays = sign_sums.mean(sums, count, K, self._units(state, shapes))
        return SummedContributions(arrays, mean_loss.mean(sums[2:]), {"projection": FORMAT_VERSION, "K": K})

    def _units(self, state: State, shapes: Shapes) -> Array:
        """Returns the unit of each block's scale, fp (L,)."""
        if UNITS in state:
            return state[UNITS]
        return np.array(self.config.expected_scales(shapes)) * sign_sums.FIRST_UNIT

    def _sum_of(self, received: Sequence[Weighted], whole: Sequence[int]) -> Arrays:
        """Averages coordinates under a shared seed and equal K_l into one vector for all participants."""
        total = sum(sent.pull * self._coordinates(sent.contribution, whole) for sent in received)
        total /= sum(sent.weight for sent in received)
        return _as_one(received[0], torch.as_tensor(total).numpy())

    def _coordinates(self, received: Contribution, whole: Sequence[int]) -> torch.Tensor:
        kind, arrays = cast(Kind, self.config.coordinates), received.arrays  # not auto, which needs own seeds
        if is_mean(received):
            kind, arrays = "float32", {"coordinates": arrays["coordinates"]}
        return torch.cat([*quantize.dequantize(arrays, kind, received.meta.K or (), whole)])


class _Trained(NamedTuple):
    """Result of training: the coordinates γ_l of its update, its metrics, and what the participant keeps."""

    coordinates: Sequence[torch.Tensor]
    metrics: dict[str, float]
    memory: Arrays = NOTHING


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


def _zeros_like(parameters: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns zeros in the shapes of ``parameters``, all in one buffer as long as the largest."""
    first = next(iter(parameters.values()))
    buffer = torch.zeros(max(each.numel() for each in parameters.values()), device=first.device)
    return {name: buffer[: each.numel()].view(each.shape) for name, each in parameters.items()}


def _as_floats(integers: Integers) -> Arrays:
    """Returns the integers modulo 2²⁴, which fp32 holds exactly; a secure sum's ring is smaller."""
    half = 1 << 23
    return {"coordinates": (((integers + half) & (2 * half - 1)) - half).astype(np.float32)}


def _side_by_side(received: Sequence[Weighted]) -> Arrays:
    """Concatenates all participants' coordinates, still quantised, and adds their lengths."""
    result = _identity(received)
    for name in received[0].contribution.arrays:
        parts = [sent.contribution.arrays[name] for sent in received]
        result[name] = np.concatenate(parts)
        result[f"{name}.lengths"] = np.array([len(part) for part in parts], dtype=np.int32)
    return result


def _mean_scales(received: Sequence[Weighted]) -> Arrays:
    """Returns the weighted mean of the scales of masked sums' means; nothing for participants' own contributions."""
    if not all(is_mean(sent.contribution) for sent in received):
        return {}
    total = sum(sent.pull * sent.contribution.arrays[MEAN_SCALES].astype(np.float64) for sent in received)
    return {MEAN_SCALES: np.asarray(total / sum(sent.weight for sent in received), dtype=np.float32)}


def _as_one(first: Weighted, coordinates: Array) -> Arrays:
    """Returns a result with one coordinate vector for all participants."""
    lengths = np.array([len(coordinates)], dtype=np.int32)
    return {**_identity([first._replace(factor=1.0)]), "coordinates": coordinates, "coordinates.lengths": lengths}


def _identity(received: Sequence[Weighted]) -> dict[str, Array]:
    """Returns the seeds of the columns, the weights, the K_l unless they are arrays, and the clipping factors if any
    participant is clipped."""
    metas = [sent.contribution.meta for sent in received]
    clipped = any(sent.factor != 1 for sent in received)
    factors = {"factors": np.array([sent.factor for sent in received], dtype=np.float32)} if clipped else {}
    K = {} if metas[0].K is None else {"K": np.array([meta.K for meta in metas], dtype=np.int32)}
    return {
        "seeds": np.array([meta.seed for meta in metas], dtype=np.uint64),
        **K,
        "weights": np.array([sent.weight for sent in received], dtype=np.float32),
        "rounding": rounding_of(received[0].contribution),
        **factors,
    }


def _terms(result: Arrays, kind: Kind, blocks: Sequence[Block], rate: float) -> list[Projected]:
    """Returns one reconstruction per seed: its coordinates per block, already multiplied by rate and weight."""
    lengths = {name: np.cumsum(result[f"{name}.lengths"])[:-1] for name in result if f"{name}.lengths" in result}
    parts = {name: np.split(result[name], cuts) for name, cuts in lengths.items()}
    weights = result["weights"].tolist()
    factors = result["factors"].tolist() if "factors" in result else [1.0] * len(weights)
    steps = [rate * weight * factor / sum(weights) for weight, factor in zip(weights, factors, strict=True)]
    lists = result["K"].tolist() if "K" in result else [counts_of(part.tobytes(), blocks) for part in parts[ALLOCATION]]
    rows = zip(result["seeds"].tolist(), lists, steps, strict=True)
    return [
        Projected(seed, quantize.dequantize(coordinates_of(_of(parts, i)), kind, K, whole(blocks), step))
        for i, (seed, K, step) in enumerate(rows)
    ]


def _of(parts: Mapping[str, Sequence[Array]], participant: int) -> Arrays:
    return {name: part[participant] for name, part in parts.items()}
