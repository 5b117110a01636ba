from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from ferret_core.protocol import wire
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Contribution, ContributionMeta
from tests.refusals import refused

META = ContributionMeta(
    format=1,
    experiment="exp_0000000000000001",
    round=3,
    participant="client-001",
    algorithm="ferret",
    base_digest="ab" * 32,
    examples=40,
    seed=7,
)
DTYPES = st.sampled_from([np.float32, np.float16, np.int32, np.uint64, np.int8, np.uint8])


@st.composite
def named_arrays(draw: st.DrawFn) -> dict[str, np.ndarray]:
    names = draw(st.sets(st.text(min_size=1, max_size=12).filter(lambda name: name != "__metadata__"), max_size=4))
    finite = {"allow_nan": False, "allow_infinity": False}
    return {
        name: draw(
            DTYPES.flatmap(
                lambda dtype: arrays_of.arrays(
                    dtype,
                    arrays_of.array_shapes(max_dims=3, max_side=5),
                    elements=finite if dtype in (np.float32, np.float16) else None,
                )
            )
        )
        for name in names
    }


@given(named_arrays())
def test_what_is_encoded_is_decoded(arrays: dict[str, np.ndarray]) -> None:
    decoded, meta = wire.decode(wire.encode(arrays, {"round": 3, "text": "Überraschung"}))
    assert meta == {"round": 3, "text": "Überraschung"}
    assert decoded.keys() == arrays.keys()
    for name, array in arrays.items():
        assert decoded[name].dtype == array.dtype
        np.testing.assert_array_equal(decoded[name], array)


@given(named_arrays())
def test_equal_contents_are_equal_bytes(arrays: dict[str, np.ndarray]) -> None:
    backwards = dict(reversed(arrays.items()))
    assert wire.encode(arrays, {"a": 1, "b": 2}) == wire.encode(backwards, {"b": 2, "a": 1})


@pytest.mark.parametrize("extra", [b"\0", b"x" * 64])
def test_trailing_bytes_are_refused(extra: bytes) -> None:
    with refused("contribution.malformed", "left over"):
        wire.decode(wire.encode({"a": np.zeros(2, np.float32)}, {}) + extra)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_values_that_are_no_numbers_are_refused(value: float, dtype: type) -> None:
    blob = wire.encode({"coordinates": np.array([1, value], dtype=dtype)}, {})
    with refused("contribution.non_finite", field="coordinates"):
        wire.decode(blob)


def _raw(header: object, body: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


F32 = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
META_HEADER = {"ferret": "{}"}


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ([], "header"),
        ({}, "__metadata__"),
        ({"__metadata__": {"other": "{}"}}, "__metadata__"),
        ({"__metadata__": {"ferret": "[]"}}, "__metadata__"),
        ({"__metadata__": META_HEADER, "a": {**F32, "dtype": "F64"}}, "a.dtype"),
        ({"__metadata__": META_HEADER, "a": {**F32, "dtype": ["F32"]}}, "a.dtype"),
        ({"__metadata__": META_HEADER, "a": {**F32, "shape": [-1]}}, "a.shape"),
        ({"__metadata__": META_HEADER, "a": {**F32, "shape": [True]}}, "a.shape"),
        ({"__metadata__": META_HEADER, "a": {**F32, "shape": [2**40, 2**40]}}, "a.data_offsets"),
        ({"__metadata__": META_HEADER, "a": {**F32, "data_offsets": [4, 8]}}, "a.data_offsets"),
        ({"__metadata__": META_HEADER, "a": {"dtype": "F32"}}, "a"),
        ({"__metadata__": META_HEADER, "a": F32, "b": F32}, "b.data_offsets"),
    ],
)
def test_a_wrong_header_names_the_field(header: object, names: str) -> None:
    with pytest.raises(FerretError) as caught:
        wire.decode(_raw(header, bytes(4)))
    assert caught.value.errors[0].field == names


def test_a_key_that_stands_twice_is_refused() -> None:
    text = b'{"__metadata__":{"ferret":"{}"},"__metadata__":{"ferret":"{}"}}'
    with refused("contribution.malformed", "not JSON"):
        wire.decode(struct.pack("<Q", len(text)) + text)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"format": 2}, "metadata.format"),
        ({"round": 0}, "metadata.round"),
        ({"seed": -1}, "metadata.seed"),
        ({"seed": 2**64}, "metadata.seed"),
        ({"format": None}, "metadata.format"),
        ({"base_digest": "abc"}, "metadata.base_digest"),
        ({"surprise": 1}, "metadata.surprise"),
        ({"metrics": {"train_loss": "low"}}, "metadata.metrics.train_loss"),
    ],
)
def test_wrong_metadata_name_the_field(change: dict[str, object], field: str) -> None:
    blob = wire.encode({}, META.model_dump(mode="json") | change)
    with refused("contribution.malformed", field=field):
        Contribution.decode(blob)


def test_the_safetensors_library_reads_a_contribution() -> None:
    import safetensors.numpy

    arrays = {"coordinates": np.arange(5, dtype=np.float16), "scales": np.ones(2, np.float32)}
    loaded = safetensors.numpy.load(Contribution(META, arrays).encode())
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded[name], array)
