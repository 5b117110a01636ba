from __future__ import annotations

import pytest

from ferret_core.protocol.rounding import ceil_share


@pytest.mark.parametrize(
    ("share", "count", "expected"), [(0.07, 100, 7), (0.55, 100, 55), (0.1, 30, 3), (0.015, 199, 3), (1.0, 3, 3)]
)
def test_a_share_is_that_of_its_decimal_value_rounded_up(share: float, count: int, expected: int) -> None:
    assert ceil_share(share, count) == expected
