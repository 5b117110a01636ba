"""Fed-SB's options and contributions: a core of r × r numbers per tuned matrix."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, cast

from pydantic import Field, model_validator

from ferret_core.algorithms.configs.base import ContributionSize, check_layouts, size_of
from ferret_core.algorithms.configs.norms import Norms, norm
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection.coordinate_encoding import Kind, Layout, decode, layouts
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import MAX_BYTES, MAX_REAL, MAX_WIDTH, Label
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.training.config import LOCAL, LocalConfig

LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
WEIGHT = ".weight"
DEFAULT_RANK = 16
MAX_PUBLIC = 10_000
"""Most public examples: more would not turn the bases."""


class CoreConfig(LocalConfig):
    """Local Adam; cores need a larger learning rate than whole matrices."""

    learning_rate: float = Field(
        default=1e-3, gt=0, le=MAX_REAL, description="Local learning rate η, constant over the steps"
    )


class Config(StrictModel):
    """Fed-SB's options."""

    rank: int | None = Field(
        default=None,
        ge=1,
        le=MAX_WIDTH,
        description="Rows and columns r of a core; 16 without bytes_per_round",
        json_schema_extra={"excludes": ["bytes_per_round"]},
    )
    bytes_per_round: int | None = Field(
        default=None,
        ge=1,
        le=MAX_BYTES,
        description="Bytes per participant and round, filled by the largest rank that fits; replaces rank",
        json_schema_extra={"excludes": ["rank"]},
    )
    targets: list[Label] = Field(
        default=[*LAYERS],
        min_length=1,
        max_length=1000,
        description="Linear layers to tune, by the ends of their names",
    )
    coordinates: Kind = Field(default="float16", description="Encoding of a core")
    public_examples: int = Field(
        default=50,
        ge=1,
        le=MAX_PUBLIC,
        description="Examples of the validation split from which the server takes the bases; nobody trains on them, "
        "and every participant receives the bases",
        json_schema_extra={"unit": "examples"},
    )
    local: CoreConfig = Field(default=CoreConfig(), description=LOCAL)

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, options: Any) -> Any:
        """Fills in the default rank, so that a stored specification is explicit."""
        if not isinstance(options, Mapping):
            return options
        given = {name: value for name, value in cast(Mapping[str, Any], options).items() if value is not None}
        return given if {"rank", "bytes_per_round"} & set(given) else {**given, "rank": DEFAULT_RANK}

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.rank is not None and self.bytes_per_round is not None:
            both = f"rank = {self.rank} and bytes_per_round = {self.bytes_per_round}"
            raise ValueError(f"{both} exclude each other: give one")
        return self

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_layouts(contribution.arrays, self._layouts(self.matrices(shapes)))
        self.cores(contribution.arrays, shapes)

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(self._layouts(self.matrices(shapes)))

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        """Returns one norm per matrix; the basis is orthonormal, so the move of a matrix has the norm of its core."""
        tuned = self.matrices(shapes)
        return Norms.of(
            map(norm, self.cores(contribution.arrays, shapes)), [matrix.rows * matrix.columns for matrix in tuned]
        )

    @property
    def traits(self) -> Traits:
        return Traits(
            first_order=self.local,
            sparse=True,
            comparable=self.coordinates != "sign",
            directions=lambda shapes: sum(matrix.rank**2 for matrix in self.matrices(shapes)),
            aggregation_vectors=2,
            decodable=True,
            adapts=True,
            public_examples=self.public_examples,
        )

    def cores(self, arrays: Arrays, shapes: Shapes) -> Sequence[Array]:
        """Returns fp32 (r²,) per matrix; raises like ``coordinates.decode``."""
        return decode(arrays, self.coordinates, [matrix.rank**2 for matrix in self.matrices(shapes)])

    def matrices(self, shapes: Shapes) -> list[Matrix]:
        """Returns the tuned matrices, in canonical order.

        Raises ``spec.invalid`` for a target that is not a layer, and lists the layers; also for a budget too small for
        cores of one number.
        """
        found = list(self._found(shapes, 1))
        for target in self.targets:
            if not any(_ends_with(matrix.layer, target) for matrix in found):
                layers = sorted(
                    {name.removesuffix(WEIGHT).rpartition(".")[2] for name in shapes if _is_matrix(name, shapes)}
                )
                message = f"{target} is not a layer with a matrix; choose from {', '.join(layers)}"
                raise FerretError.of_field("spec.invalid", "algorithm.targets", self.targets, message)
        return list(self._found(shapes, self._rank(shapes)))

    def _rank(self, shapes: Shapes) -> int:
        if self.bytes_per_round is None:
            return self.rank or DEFAULT_RANK

        def bytes_for(rank: int) -> int:
            return size_of(self._layouts(list(self._found(shapes, rank)))).arrays

        largest = max(min(matrix.rows, matrix.columns) for matrix in self._found(shapes, 1))
        fitting = bisect_right(range(1, largest + 1), self.bytes_per_round, key=bytes_for)
        if fitting == 0:
            reason = f"the smallest possible is {bytes_for(1)}, with cores of one number"
            raise FerretError.of_field("spec.invalid", "algorithm.bytes_per_round", self.bytes_per_round, reason)
        return fitting

    def _found(self, shapes: Shapes, most: int) -> Iterator[Matrix]:
        start = left = right = 0
        for name, shape in shapes.items():
            layer = name.removesuffix(WEIGHT)
            if _is_matrix(name, shapes) and any(_ends_with(layer, target) for target in self.targets):
                rows, columns = shape
                rank = min(most, rows, columns)
                yield Matrix(layer, rows, columns, rank, start, left, right)
                left, right = left + rows * rank, right + columns * rank
            start += count({name: shape})

    def _layouts(self, tuned: list[Matrix]) -> dict[str, Layout]:
        return layouts(self.coordinates, sum(matrix.rank**2 for matrix in tuned), 0, len(tuned))


class Matrix(NamedTuple):
    """A tuned matrix: its ``layer``, its sides, the rank of its core, and its start in the update, in U and in V."""

    layer: str
    rows: int
    columns: int
    rank: int
    start: int
    left: int
    right: int

    @property
    def elements(self) -> slice:
        return slice(self.start, self.start + self.rows * self.columns)

    def basis(self, U: Array, V: Array) -> tuple[Array, Array]:
        """Returns the matrix's own U, fp32 (rows, r), and V, fp32 (columns, r)."""
        left, right = self.rows * self.rank, self.columns * self.rank
        own = U[self.left : self.left + left], V[self.right : self.right + right]
        return own[0].reshape(self.rows, self.rank), own[1].reshape(self.columns, self.rank)


def _is_matrix(name: str, shapes: Shapes) -> bool:
    """Returns True for a matrix of a numbered layer; embeddings and the head have no number."""
    return name.endswith(WEIGHT) and len(shapes[name]) == 2 and any(part.isdigit() for part in name.split("."))


def _ends_with(layer: str, target: str) -> bool:
    return f".{layer}".endswith(f".{target}")
