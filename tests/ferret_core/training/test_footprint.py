"""What a local update holds at least, and what is said where a GPU has less."""

from __future__ import annotations

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.training.config import LocalConfig
from ferret_core.training.footprint import check_room

D, LARGEST = 7_000_000_000, 130_000_000
GB = 10**9


def test_what_fits_is_let_through() -> None:
    check_room(LocalConfig(), D, D, LARGEST, 112 * GB)
    check_room(LocalConfig(optimizer="normalized"), D, D, LARGEST, 56 * GB)
    pure = LocalConfig(optimizer="normalized", accumulation=1, optimizer_in_backward=True, precision="pure_bfloat16")
    check_room(pure, D, D, LARGEST, 17 * GB)


@pytest.mark.parametrize(
    ("room", "way"),
    [
        (80 * GB, r'optimizer = "normalized" needs 56\.0 GB'),
        (40 * GB, r'optimizer = "normalized" with optimizer_in_backward = true needs 28\.5 GB'),
        (20 * GB, r'.* optimizer_in_backward = true and precision = "pure_bfloat16" .* needs 16\.3 GB'),
        (16 * GB, "use a smaller model, an algorithm that trains adapters, or a larger GPU"),
    ],
)
def test_too_little_memory_is_named_with_the_options_that_would_fit(room: int, way: str) -> None:
    with pytest.raises(FerretError, match=rf"at least 112\.0 GB on a GPU that has {room // GB}\.0 GB: {way}") as caught:
        check_room(LocalConfig(), D, D, LARGEST, room)
    assert caught.value.code == "memory.exhausted"
    assert caught.value.errors[0].field == "algorithm.local.optimizer"


def test_adapters_need_little_beside_the_weights() -> None:
    check_room(LocalConfig(), D, 4_000_000, 100_000, 29 * GB)
