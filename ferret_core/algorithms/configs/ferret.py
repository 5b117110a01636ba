"""Ferret's options and contributions: coordinates for each block of the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, cast

import numpy as np
from pydantic import Field, model_validator

from ferret_core.algorithms.configs.base import ContributionSize, Preset, check_layouts, check_metadata, size_of
from ferret_core.algorithms.configs.norms import Norms, norm
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, sizes
from ferret_core.projection import FORMAT_VERSION
from ferret_core.projection.allocation import (
    FIXED,
    AllocationRule,
    bytes_of,
    coordinates_within,
    counts_of,
    rounded_down,
    split,
    taken,
)
from ferret_core.projection.blocks import Block, BlockRule, cut
from ferret_core.projection.coordinate_encoding import Kind, Layout, decode, layouts
from ferret_core.projection.sign_sums import MEAN_SCALES
from ferret_core.projection.sparse_sign import TERMS, Sketch, bounds, possible_sketch, sent_of, sketch
from ferret_core.projection.variance import noise_share, relative_noise
from ferret_core.protocol.limits import MAX_BYTES, MAX_ELEMENTS
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Array, Arrays, Contribution, malformed
from ferret_core.training.config import LocalConfig
from ferret_core.training.expected_update_norm import expected_length

DEFAULT_BYTES = 8192
ALLOCATION = "allocation"
"""The array of sparse coordinates with the K_l, a byte for each block."""
OPTIMIZER = "normalized"
"""Its updates have the same norm for models of any size, and so has the noise of their projection."""
PRESETS = {
    "ferret_paper": Preset(
        "The paper's Ferret: basis T, K = 4096 in fp16, allocation, blocks and plain SGD as published.",
        {
            "basis": "T",
            "K": 4096,
            "allocation": "norm",
            "coordinates": "float16",
            "blocks": "grouped",
            "local": {"optimizer": "sgd"},
        },
    )
}


class Config(StrictModel):
    """Ferret's options. The default sends 8 kB: about 60,000 signs, or places and signs of the 5,000 largest of
    millions."""

    bytes_per_round: int | None = Field(
        default=None,
        ge=1,
        le=MAX_BYTES,
        description="Bytes per participant and round, filled with coordinates; 8192 without K",
        json_schema_extra={"unit": "bytes", "excludes": ["K"]},
    )
    K: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ELEMENTS,
        description="Coordinates over all blocks; replaces bytes_per_round",
        json_schema_extra={"unit": "coordinates", "excludes": ["bytes_per_round"]},
    )
    basis: Literal["G", "H", "R", "T"] = Field(
        default="G",
        description="G: signed buckets, cost independent of K; H: Hadamard rows; R: dense signs; T: the paper's",
    )
    blocks: BlockRule = Field(
        default="tensor", description="One per tensor, grouped as in the authors' code, or a number of equal ones"
    )
    whole_up_to: int = Field(
        default=0,
        ge=0,
        le=MAX_ELEMENTS,
        description="Blocks of at most this many elements are sent whole",
        json_schema_extra={"unit": "elements"},
    )
    allocation: AllocationRule = Field(
        default="norm",
        description="Split of K over the blocks; curvature: more where the loss is steep; uniform and fixed: "
        "independent of the update",
    )
    coordinates: Literal["auto", Kind] = Field(
        default="auto",
        description="Encoding of a coordinate; sparse_sign: place and sign of the largest among many (basis G or H); "
        "auto: sparse_sign for a model with many weights per byte, else sign",
    )
    seeds: Literal["own", "shared"] = Field(
        default="own",
        description="own: noise averages out; shared: coordinates add up; requires uniform or fixed allocation",
    )
    local: LocalConfig = Field(
        default=LocalConfig(optimizer=OPTIMIZER), description="Local training; the default optimizer is normalized"
    )

    refuse_noisy_rounds: bool = Field(
        default=True, description="Fail if the noise of the projection would exceed half of the weights"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, options: Any) -> Any:
        """Fills in the optimizer, the budget, and the encoding if only one is possible, so that a stored specification
        is explicit."""
        if not isinstance(options, Mapping):
            return options
        given = {name: value for name, value in cast(Mapping[str, Any], options).items() if value is not None}
        local = given.get("local", {})
        if isinstance(local, Mapping):
            given["local"] = {"optimizer": OPTIMIZER, **cast(Mapping[str, Any], local)}
        if given.get("coordinates", "auto") == "auto" and (
            "K" in given or given.get("seeds", "own") != "own" or given.get("basis", "G") != "G"
        ):
            given["coordinates"] = "sign"
        return given if "K" in given else {"bytes_per_round": DEFAULT_BYTES, **given}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.K is not None and self.bytes_per_round is not None:
            raise ValueError(f"K = {self.K} and bytes_per_round = {self.bytes_per_round} exclude each other: give one")
        if self.seeds != "own" and self.allocation not in FIXED:
            raise ValueError(
                f"seeds = {self.seeds!r} needs allocation = 'uniform' or 'fixed', the same K_l for all participants, "
                f"not {self.allocation!r}"
            )
        if self.watches_steps and self.local.optimizer_in_backward:
            raise ValueError(
                "local.optimizer_in_backward = True: allocation = 'curvature' needs whole gradients; take 'norm', or "
                "false"
            )
        if self.coordinates == "sparse_sign":
            self._agree_sparse()
        return self

    def _agree_sparse(self) -> None:
        if self.K is not None:
            raise ValueError(f"K = {self.K}: coordinates = 'sparse_sign' needs bytes_per_round, which it fills")
        if self.basis not in TERMS:
            raise ValueError(
                f"basis = {self.basis!r}: coordinates = 'sparse_sign' needs basis = 'G' or 'H': their cost does not "
                "depend on how many coordinates there are"
            )
        if self.seeds != "own":
            raise ValueError(
                f"seeds = {self.seeds!r}: coordinates = 'sparse_sign' needs seeds = 'own': places differ between "
                "participants and do not add up"
            )

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        blocks = self.cut(shapes)
        kind, K = self.encoding(blocks), self.counts(contribution, blocks)
        columns = {"projection": FORMAT_VERSION, "seed": self.seed_for(task)}
        check_metadata(contribution, columns)
        _check_counts(K, self._bounded(blocks))
        if sum(K) > self.total(blocks) or (kind != "sparse_sign" and sum(K) < self.total(blocks)):
            raise malformed("K", sum(K), f"expected {self.total(blocks)} coordinates in all")
        if self.allocation in FIXED and self.fixed(blocks) != list(K):
            raise malformed("K", str(K)[:80], f"is not the {self.allocation} allocation that is required")
        decode(coordinates_of(contribution.arrays), kind, K, whole(blocks))
        room = self.room(blocks)
        if kind == "sparse_sign" and contribution.arrays["coordinates"].nbytes > room:
            sent = contribution.arrays["coordinates"].nbytes
            raise malformed("coordinates.shape", [sent], f"is more than the {room} bytes that bytes_per_round leaves")

    def size(self, shapes: Shapes) -> ContributionSize:
        blocks = self.cut(shapes)
        kind, apart = self.encoding(blocks), sum(block.size for block in blocks if block.whole)
        arrays = layouts(kind, self.total(blocks), apart, len(blocks), self.room(blocks))
        if kind == "sparse_sign":
            return size_of({**arrays, ALLOCATION: _allocation_layout(blocks)})
        return size_of(arrays, numbers=len(blocks))

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        """Returns one norm per block: the columns are almost orthogonal, so ‖V·γ‖ is about ‖γ‖ times a column's
        length."""
        blocks = self.cut(shapes)
        kind, gammas = self.decoded(contribution, blocks)
        values, noise = list[float](), list[float]()
        for block, gamma in zip(blocks, gammas, strict=True):
            values.append(norm(gamma) * (1 if block.whole else column_length(self.basis, block.size, len(gamma))))
            sent = int(np.count_nonzero(gamma))
            share = noise_share(self.basis, kind, block.size, len(gamma), sent)
            noise.append(values[-1] * math.sqrt(0 if block.whole else share))
        return Norms.of(values, [block.size for block in blocks], noise)

    def decoded(self, contribution: Contribution, blocks: Sequence[Block]) -> tuple[Kind, Sequence[Array]]:
        """Returns the precision and the coordinates of every block, of a participant or of a masked sum's mean."""
        arrays, K = contribution.arrays, self.counts(contribution, blocks)
        if is_mean(contribution):
            return "float32", decode({"coordinates": arrays["coordinates"]}, "float32", K, whole(blocks))
        kind = self.encoding(blocks)
        return kind, decode(coordinates_of(arrays), kind, K, whole(blocks))

    def expected_scales(self, shapes: Shapes) -> list[float]:
        """Returns the expected scale of every block's signs in round 1, in the order of the blocks."""
        blocks = self.cut(shapes)
        values = self.expected_norms(shapes, None).values
        return [
            float(value) / (column_length(self.basis, block.size, count) * math.sqrt(count)) if count else 0.0
            for value, block, count in zip(values, blocks, self.fixed(blocks), strict=True)
        ]

    def expected_norms(self, shapes: Shapes, examples: int | None) -> Norms:
        """Returns the expected norms of an unknown contribution, in which every weight moves alike."""
        blocks = self.cut(shapes)
        moved = self.expected_moves(blocks, examples)
        K, kind = self.allocate(moved, blocks), self.encoding(blocks)
        errors = [
            0 if block.whole else relative_noise(self.basis, kind, block.size, count, sent)
            for block, count, sent in zip(blocks, K, self.sent(blocks, K), strict=True)
        ]
        values = [each * math.sqrt(1 + error) for each, error in zip(moved, errors, strict=True)]
        noise = [each * math.sqrt(error) for each, error in zip(moved, errors, strict=True)]
        return Norms.of(values, [block.size for block in blocks], noise)

    def expected_moves(self, blocks: Sequence[Block], examples: int | None) -> list[float]:
        """Returns the expected ‖Δ_l‖ of an unknown update, in which every weight moves alike."""
        d = sum(block.size for block in blocks)
        length = expected_length(self.local, d, examples)
        return [length * math.sqrt(block.size / d) for block in blocks]

    def estimated_moves(self, gammas: Sequence[Array], blocks: Sequence[Block]) -> list[float | None]:
        """Returns estimates of ‖Δ_l‖ from exact coordinates, None for a block without any.

        Their squares have no bias, and a relative standard deviation of at most √(2 / K_l).
        """
        return [_estimated_move(self.basis, gamma, block) for gamma, block in zip(gammas, blocks, strict=True)]

    @property
    def traits(self) -> Traits:
        return Traits(
            first_order=self.local,
            projection=self,
            comparable=self.seeds == "shared",
            comparable_with="algorithm.seeds = 'shared'",
            directions=(lambda shapes: self.total(self.cut(shapes))) if self.seeds == "shared" else None,
            aggregation_vectors=0,
            shardable=True,
            steps_watched_by="algorithm.allocation" if self.watches_steps else "",
            update_told_by="" if self.allocation in FIXED else "algorithm.allocation",
            blind_with=" and ".join(FIXED),
        )

    @property
    def watches_steps(self) -> bool:
        return self.allocation == "curvature"

    def cut(self, shapes: Shapes) -> list[Block]:
        """Returns the blocks of a model with parameters of these shapes."""
        return cut(sizes(shapes), self.blocks, self.whole_up_to)

    def encoding(self, blocks: Sequence[Block]) -> Kind:
        """Returns the encoding of the coordinates: for ``auto`` sparse_sign if these blocks have a sketch, else
        sign."""
        if self.coordinates != "auto":
            return self.coordinates
        return "sign" if possible_sketch(*self._sketched(blocks)) is None else "sparse_sign"

    def total(self, blocks: Sequence[Block]) -> int:
        """Returns K: as given, or as many as fit into the bytes; at most the number of the model's elements.

        Sparse coordinates are at most as many, because each K_l is rounded down.
        """
        if self.K is not None:
            return min(self.K, sum(block.size for block in blocks))
        if (kind := self.encoding(blocks)) == "sparse_sign":
            return self._sketch(blocks).K
        return coordinates_within(self.budget, kind, blocks)

    def allocate(
        self, norms: Sequence[float], blocks: Sequence[Block], curvatures: Sequence[float] | None = None
    ) -> list[int]:
        """Returns K_l of every block for an update with these norms and these curvatures of the loss."""
        found = split(self.allocation, self.total(blocks), norms, self._bounded(blocks), curvatures)
        return rounded_down(found, blocks) if self.encoding(blocks) == "sparse_sign" else found

    def fixed(self, blocks: Sequence[Block]) -> list[int]:
        """Returns the allocation for an unknown update."""
        return self.allocate([0.0] * len(blocks), blocks)

    @property
    def budget(self) -> int:
        return self.bytes_per_round or DEFAULT_BYTES

    def counts(self, contribution: Contribution, blocks: Sequence[Block]) -> Sequence[int]:
        """Returns the K_l of a contribution; raises ``contribution.malformed`` if it has none in the right form."""
        if self.encoding(blocks) != "sparse_sign":
            return contribution.meta.K or ()
        if contribution.meta.K is not None:
            raise malformed("metadata.K", str(contribution.meta.K)[:80], f"expected none, but the array {ALLOCATION}")
        sent = {name: array for name, array in contribution.arrays.items() if name == ALLOCATION}
        check_layouts(sent, {ALLOCATION: _allocation_layout(blocks)})
        places = sent[ALLOCATION].tobytes()
        K = counts_of(places, blocks)
        if bytes_of(K, blocks) != places:
            raise malformed(ALLOCATION, None, "is not 0 for a block that is sent whole")
        return K

    def room(self, blocks: Sequence[Block]) -> int:
        """Returns the bytes for places and signs of sparse coordinates, without the K_l; 0 for other encodings."""
        return self.budget - _beside(blocks) if self.encoding(blocks) == "sparse_sign" else 0

    def sent(self, blocks: Sequence[Block], K: Sequence[int]) -> list[int]:
        """Returns the expected number of sent coordinates of every block."""
        if self.encoding(blocks) != "sparse_sign":
            return list(K)
        return sent_of(K, self._sketch(blocks).sent, whole(blocks))

    def expected_sent(self, blocks: Sequence[Block]) -> list[int]:
        """Returns the same for an update in which every weight moves alike."""
        return self.sent(blocks, self.allocate([math.sqrt(block.size) for block in blocks], blocks))

    def sent_in(self, contribution: Contribution, blocks: Sequence[Block]) -> list[int]:
        """Returns the number of coordinates of every block that the contribution holds."""
        if self.encoding(blocks) != "sparse_sign":
            return list(self.counts(contribution, blocks))
        return [int(np.count_nonzero(gamma)) for gamma in self.decoded(contribution, blocks)[1]]

    def _sketch(self, blocks: Sequence[Block]) -> Sketch:
        return sketch(*self._sketched(blocks))

    def _sketched(self, blocks: Sequence[Block]) -> tuple[int, str, Sequence[Block], int]:
        return self.budget, self.basis, blocks, _beside(blocks)

    def _bounded(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Returns blocks with their sizes reduced to the maximum number of coordinates."""
        if self.encoding(blocks) != "sparse_sign":
            return blocks
        pairs = zip(blocks, bounds(self.basis, blocks), strict=True)
        return [block._replace(size=most) for block, most in pairs]

    def seed_for(self, task: RoundTask) -> int:
        return task.seed if self.seeds == "own" else task.round_seed


def allocation_array(K: Sequence[int], blocks: Sequence[Block]) -> Array:
    """Returns the K_l of sparse coordinates, rounded down, uint8 (L,)."""
    return np.frombuffer(bytes_of(K, blocks), np.uint8)


def coordinates_of(arrays: Arrays) -> Arrays:
    """Returns the arrays without the K_l."""
    return {name: array for name, array in arrays.items() if name != ALLOCATION}


def _allocation_layout(blocks: Sequence[Block]) -> Layout:
    return Layout(np.dtype(np.uint8), (len(blocks),))


def _beside(blocks: Sequence[Block]) -> int:
    """Returns the bytes of sparse coordinates that are not places and signs."""
    apart = sum(block.size for block in blocks if block.whole)
    return taken("sparse_sign", [0] * len(blocks), apart, apart)


def is_mean(contribution: Contribution) -> bool:
    """True for the mean of a masked sum (:mod:`ferret_core.projection.sign_sums`), False for a participant's signs."""
    return MEAN_SCALES in contribution.arrays


def column_length(basis: str, d: int, K: int) -> float:
    """Returns the length of each of the K columns of a block of d elements, see :mod:`ferret_core.projection`."""
    match basis:
        case "G":  # a sign for each element of its bucket
            return math.sqrt(d / max(K, 1))
        case "R":  # a sign for each element
            return math.sqrt(d)
        case "T":  # d entries of variance 1/(3d)
            return math.sqrt(1 / 3)
        case _:  # H: a row of an orthonormal matrix
            return 1.0


def isometric_factors(basis: str, blocks: Sequence[Block], K: Sequence[int]) -> list[float]:
    """Returns, for each block, the factor of γ_l that makes its length an estimate of ‖Δ_l‖; 1 without coordinates."""
    # A reconstruction V·γ is √(d/K) times as long as Δ.
    return [
        column_length(basis, block.size, count) * math.sqrt(count / block.size) if count and not block.whole else 1.0
        for block, count in zip(blocks, K, strict=True)
    ]


def _estimated_move(basis: str, gamma: Array, block: Block) -> float | None:
    return norm(gamma) * isometric_factors(basis, [block], [len(gamma)])[0] if len(gamma) else None


def whole(blocks: Sequence[Block]) -> list[int]:
    """Returns the positions of the blocks that are sent whole."""
    return [block.id for block in blocks if block.whole]


def _check_counts(K: Sequence[int], blocks: Sequence[Block]) -> None:
    if len(K) != len(blocks):
        raise malformed("K", len(K), f"expected one number for each of {len(blocks)} blocks")
    for block, count in zip(blocks, K, strict=True):
        if not (block.size if block.whole else 0) <= count <= block.size:
            allowed = f"must be {block.size}" if block.whole else f"must be between 0 and {block.size}"
            raise malformed(f"K of {block.name}", count, allowed)
