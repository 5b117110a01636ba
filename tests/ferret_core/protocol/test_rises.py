"""Rises as they travel: four numbers in half precision, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ferret_core.plan import RISES
from ferret_core.protocol.rises import GREATEST, packed, rise, unpacked
from ferret_core.protocol.wire import ContributionMeta, encode

META = ContributionMeta(
    experiment="exp_0123456789abcdef",
    round=2,
    participant="clinic-7",
    algorithm="fedavg",
    base_digest="ba" * 32,
    examples=8,
)
PUBLISHED = "003c00b800000004"
"""Of docs/wire-format.md."""


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4))
def test_they_come_back_as_the_nearest_numbers_in_half_precision(rises: list[float]) -> None:
    text = packed(rises)
    assert len(bytes.fromhex(text)) == 8
    assert unpacked(text) == tuple(float(np.float16(min(max(value, -GREATEST), GREATEST))) for value in rises)


def test_the_published_example() -> None:
    assert unpacked(PUBLISHED) == (1.0, -0.5, 0.0, 2.0**-14)
    assert packed([1.0, -0.5, 0.0, 2.0**-14]) == PUBLISHED


def test_a_rise_is_a_share_of_the_loss_and_of_a_nat_at_least() -> None:
    assert rise(4.0, 5.0) == 0.25
    assert rise(0.5, 0.25) == -0.25
    assert rise(GREATEST, GREATEST) == 0
    assert rise(0.0, GREATEST) == GREATEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        PUBLISHED[:-4],
        PUBLISHED + "0000",
        PUBLISHED.upper().replace("B", "G"),
        PUBLISHED.replace("b", "B"),
        " " + PUBLISHED[1:],
        PUBLISHED + "\n",
        "007c000000000000",  # infinity
        "00fc000000000000",
        "000000000000007e",  # not a number
    ],
)
def test_what_is_not_four_finite_numbers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="four"):
        unpacked(text)
    with pytest.raises(ValidationError, match="rises"):
        ContributionMeta.model_validate({**META.model_dump(), "rises": text})


@pytest.mark.parametrize("value", [0, 1.5, [1.0, 0.5, 0.25, 0.125], {}, True])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="rises"):
        ContributionMeta.model_validate({**META.model_dump(), "rises": value})


def test_a_contribution_without_them_does_not_name_them() -> None:
    assert "rises" not in META.model_dump(mode="json")
    measured = META.model_copy(update={"rises": PUBLISHED})
    assert ContributionMeta.model_validate(measured.model_dump(mode="json")) == measured
    sizes = [len(encode({}, meta.model_dump(mode="json"))) for meta in (META, measured)]
    assert abs(sizes[1] - sizes[0] - RISES) < 8, "the header is filled up to 8 bytes"
