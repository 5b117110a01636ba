"""The interface of an algorithm's ``Config``, and parts shared by several.

An experiment's options determine the contents of contributions, so a ``Config`` also checks contributions. Nothing here
needs torch: the API checks submissions and uploads with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from pydantic import Field

from ferret_core.algorithms.configs.norms import Norms, dense_norms
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.limits import MAX_WIDTH
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import CONTRIBUTION_HEADER_BYTES, Array, Arrays, Contribution, malformed

LENGTH_BYTES = 8
"""Size of the blob's first field, the length of its header."""
NUMBER_BYTES = 20
"""Size of the longest 64-bit number in JSON, with its comma."""
BITS = np.dtype(np.uint8)
"""Eight bits per entry, packed from the top bit down."""


class FederatedConfig(Protocol):
    """The interface of ``ferret_core/algorithms/configs/<name>.py``'s class ``Config``, a frozen pydantic model."""

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        """Raises ``contribution.malformed`` unless the contribution is valid for ``task``.

        ``shapes`` has the shapes of the tuned parameters.
        """
        ...

    def size(self, shapes: Shapes) -> ContributionSize:
        """Returns the maximum bytes of a contribution, beyond which no upload is read, as :func:`size_of` computes."""
        ...

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        """Returns the norm of a checked contribution's move of each part of the model, at rate 1 and on its own."""
        ...

    @property
    def traits(self) -> Traits:
        """The properties of the algorithm with these options that the rest of Ferret needs."""
        ...


class Preset(NamedTuple):
    """Options of an algorithm under a name that can be chosen in place of the algorithm's.

    ``configs/<name>.py`` has them as ``PRESETS``, by name. ``title`` is one line.
    """

    title: str
    options: dict[str, Any]


class ContributionSize(NamedTuple):
    """Maximum size of a contribution's header, and size of its arrays, in bytes."""

    header: int
    arrays: int

    @property
    def total(self) -> int:
        return LENGTH_BYTES + self.header + self.arrays


class SendsUpdate(StrictModel):
    """Options of an algorithm with contributions that are the whole update and nothing else."""

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_layouts(contribution.arrays, {"update": dense(shapes)})

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of({"update": dense(shapes)})

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        return dense_norms(contribution.arrays["update"], shapes)


class SoftPrompt(SendsUpdate):
    """The options of a soft prompt, as long as in FederatedScope-LLM."""

    virtual_tokens: int = Field(
        default=20,
        ge=1,
        le=MAX_WIDTH,
        description="Length of the soft prompt m, in tokens",
        json_schema_extra={"unit": "tokens"},
    )


def dense(shapes: Shapes) -> Layout:
    """Returns the layout of one fp32 vector (d,): one number per element of the parameters, in canonical order."""
    return Layout(np.dtype(np.float32), (count(shapes),))


def size_of(layouts: Mapping[str, Layout], numbers: int = 0) -> ContributionSize:
    """Returns the size of a contribution of these arrays, with ``numbers`` numbers in its metadata besides metrics."""
    header = CONTRIBUTION_HEADER_BYTES + NUMBER_BYTES * numbers
    return ContributionSize(header, sum(math.prod(shape) * dtype.itemsize for dtype, shape in layouts.values()))


def check_layouts(arrays: Arrays, expected: Mapping[str, Layout]) -> None:
    """Raises ``contribution.malformed`` unless ``arrays`` matches ``expected`` exactly."""
    if set(arrays) != set(expected):
        raise malformed("arrays", ", ".join(sorted(arrays)), f"expected exactly {', '.join(sorted(expected))}")
    for name, (dtype, shape) in expected.items():
        if arrays[name].dtype != dtype or arrays[name].shape != shape:
            found = f"{arrays[name].dtype} {arrays[name].shape}"
            raise malformed(name, found, f"expected {dtype} {shape}")


def check_bits(name: str, packed: Array, count: int) -> None:
    """Raises ``contribution.malformed`` unless the bits after the first ``count`` of each row are zero."""
    if np.unpackbits(packed[..., count // 8 :], axis=-1)[..., count % 8 :].any():
        raise malformed(name, None, f"bits after the first {count} are not zero")


def check_metadata(contribution: Contribution, expected: Mapping[str, Any]) -> None:
    """Raises ``contribution.malformed`` for the first field of the metadata that differs from ``expected``."""
    for field, value in expected.items():
        if getattr(contribution.meta, field) != value:
            raise malformed(f"metadata.{field}", getattr(contribution.meta, field), f"expected {value}")
