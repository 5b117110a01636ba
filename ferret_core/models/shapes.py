"""The shapes of a model's trainable parameters: all that a service must know of a model to check what is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping

Shapes = Mapping[str, tuple[int, ...]]
"""The shapes by parameter name, in canonical order."""


def sizes(shapes: Shapes) -> dict[str, int]:
    """Element counts of parameters of the given shapes."""
    return {name: math.prod(shape) for name, shape in shapes.items()}


def count(shapes: Shapes) -> int:
    """How many elements they have together: d."""
    return sum(sizes(shapes).values())
