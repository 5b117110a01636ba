from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ferret_core.algorithms import diloco
from ferret_core.models.parameters import shapes
from ferret_core.protocol.wire import Array


@pytest.mark.parametrize(("kind", "error"), [("float32", 0), ("float16", 2**-11), ("int8", 1 / 127)])
def test_the_mean_of_what_travels_is_the_mean_update(
    lab: Any, weights: Any, draw: Callable[..., Array], kind: str, error: float
) -> None:
    updates = [draw(137, 1), draw(137, 2)]
    moved = lab.round(lab.algorithm("diloco", coordinates=kind), weights((3, 40), (17,)), updates, weights=[1, 3]).moved
    np.testing.assert_allclose(moved, (updates[0] + 3 * updates[1]) / 4, rtol=0, atol=error / 2 + 1e-6)


def test_an_update_takes_a_byte_for_each_parameter_as_int8(weights: Any) -> None:
    tensors = shapes(weights((3, 40), (17,)))
    assert diloco.Config(coordinates="float32").size(tensors).arrays == 4 * 137
    assert diloco.Config(coordinates="int8").size(tensors).arrays == 137 + 2 * 2 + 4
