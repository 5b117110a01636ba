from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferret_core.projection import rice_code
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array
from tests.refusals import refused

steady = settings(deadline=None)  # a busy machine is no failure


@st.composite
def chosen(draw: st.DrawFn) -> tuple[Array, Array, int]:
    """Places, signs and K, from few among very many to all of them."""
    K = draw(st.integers(1, 2**40))
    places = draw(st.sets(st.integers(0, K - 1), max_size=60))
    if draw(st.booleans()):
        places = {place % min(64, K) for place in places}
    minus = draw(st.lists(st.booleans(), min_size=len(places), max_size=len(places)))
    return np.array(sorted(places), np.int64), np.array(minus, np.bool_), K


def unpacked(packed: Array, n: int, K: int) -> tuple[Array, Array] | FerretError:
    try:
        return rice_code.unpack(packed, n, K)
    except FerretError as error:
        return error


@steady
@given(chosen())
def test_what_is_packed_is_unpacked_in_the_length_foretold(sent: tuple[Array, Array, int]) -> None:
    places, minus, K = sent
    packed = rice_code.pack(places, minus, K)
    assert len(packed) == -(-rice_code.length(places, K) // 8)
    found, signs = rice_code.unpack(packed, len(places), K)
    assert (found.tolist(), signs.tolist()) == (places.tolist(), minus.tolist())


@steady
@given(st.binary(max_size=64), st.integers(-5, 600), st.integers(0, 2**40))
def test_whatever_bytes_arrive_are_places_that_pack_to_them_or_refused(data: bytes, n: int, K: int) -> None:
    found = unpacked(np.frombuffer(data, np.uint8), n, K)
    if isinstance(found, FerretError):
        assert (found.code, bool(found.errors[0].field)) == ("contribution.malformed", True)
        return
    places, minus = found
    assert len(places) == n
    assert bool((np.diff(places) > 0).all())
    assert not n or 0 <= places[0] <= places[-1] < K
    assert rice_code.pack(places, minus, K).tobytes() == data


def test_random_places_take_a_thirtieth_of_a_bit_more_than_their_entropy() -> None:
    K, n = 640_000, 7000
    p = n / K
    entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p)) / p
    places = np.sort(np.random.default_rng(1).choice(K, n, replace=False))
    assert entropy <= rice_code.length(places, K) / n - 1 < entropy + 0.05


BYTES = rice_code.pack(np.array([3, 40, 41, 90]), np.array([True, False, True, False]), 100)


@pytest.mark.parametrize(
    ("packed", "n", "K", "field", "message"),
    [
        (BYTES, -1, 100, "sent", "sent = -1: must be between 0 and 32"),
        (BYTES, 101, 100, "sent", "sent = 101: must be between 0 and 32"),
        (BYTES, 2**31 - 1, 2**40, "sent", "sent = 2147483647: must be between 0 and 32"),
        (BYTES, 3, 100, "coordinates", "expected 3 ends of gaps"),
        (BYTES, 0, 100, "coordinates.shape", "nothing is sent"),
        (BYTES, 4, 80, "coordinates", r"= 90: is a position beyond the 80 coordinates"),
        (BYTES[:-1], 4, 100, "coordinates", "expected 4 ends of gaps"),
        (np.append(BYTES, np.uint8(0)), 4, 100, "coordinates.shape", "bytes after the last gap"),
        (np.append(BYTES, np.uint8(1)), 4, 100, "coordinates", "expected 4 ends of gaps"),
        (np.zeros(1 << 16, np.uint8), 4, 100, "coordinates", "expected 4 ends of gaps"),
        (np.append(np.zeros(1 << 16, np.uint8), np.uint8(1)), 1, 2**40, "coordinates", "reach beyond"),
    ],
)
def test_what_nobody_packs_is_refused_by_name(packed: Array, n: int, K: int, field: str, message: str) -> None:
    with refused("contribution.malformed", message, field=field):
        rice_code.unpack(packed, n, K)
