"""Losses are summed in fixed point, and a member without one does not count."""

from __future__ import annotations

import numpy as np
import pytest

from ferret_core.secure import mean_loss


@pytest.mark.parametrize(
    ("losses", "mean"),
    [
        ([1.5, None, 2.0, float("nan")], {"train_loss": 1.75}),
        ([None] * 4, {}),
        ([1e9] * 4, {"train_loss": 64.0}),
    ],
)
def test_the_loss_is_the_mean_of_members_that_have_one(losses: list[float | None], mean: dict[str, float]) -> None:
    members = [mean_loss.integers(loss) for loss in losses]
    assert mean_loss.mean([np.sum(parts, axis=0) for parts in zip(*members, strict=True)]) == mean
