"""Shapes of a model's trainable parameters: everything that a service must know of a model to check contributions."""

from __future__ import annotations

import math
from collections.abc import Mapping

Shapes = Mapping[str, tuple[int, ...]]
"""Shapes by parameter name, in canonical order."""


def sizes(shapes: Shapes) -> dict[str, int]:
    """Returns the element counts of parameters with the given shapes."""
    return {name: math.prod(shape) for name, shape in shapes.items()}


def count(shapes: Shapes) -> int:
    """Returns d, the total number of elements."""
    return sum(sizes(shapes).values())
