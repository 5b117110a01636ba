"""Whatever bytes arrive as a contribution: they decode, or raise one of two typed errors. Nothing else, ever."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Contribution, ContributionMeta, encode

HARNESS = Path(__file__).with_name("fuzz_wire.py")
TYPED = {"contribution.malformed", "contribution.non_finite"}
META = ContributionMeta(
    format=1,
    experiment="exp_0000000000000001",
    round=3,
    participant="site-a",
    algorithm="ferret",
    base_digest="ab" * 32,
    examples=40,
    seed=7,
)
BLOB = Contribution(
    META,
    {
        "coordinates": np.arange(6, dtype=np.float16),
        "none": np.empty((0, 3), np.int8),
        "scales": np.ones((2, 1), np.float32),
    },
).encode()


def decoded(blob: bytes) -> None:
    try:
        Contribution.decode(blob)
    except FerretError as error:
        if error.code not in TYPED:
            raise


def blob_of(header: Any, body: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def with_array(shape: list[int], dtype: str = "F32", size: int = 0) -> bytes:
    array = {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}
    return blob_of({"__metadata__": {"ferret": json.dumps(META.model_dump())}, "a": array}, bytes(size))


@pytest.mark.parametrize("shape", [[0, 2**47, 2**47], [2**40, 0, 2**40, 2**40], [0] + [2**48 - 1] * 7])
def test_an_array_without_elements_may_have_no_other_huge_dimensions(shape: list[int]) -> None:
    with pytest.raises(FerretError) as caught:
        Contribution.decode(with_array(shape))
    assert caught.value.code == "contribution.malformed"
    assert caught.value.errors[0].field == "a.shape"


def test_an_array_without_elements_is_one() -> None:
    assert Contribution.decode(with_array([0, 3])).arrays["a"].shape == (0, 3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
SIZES = st.lists(st.integers(0, 3) | st.integers(0, 2**49), max_size=9)
ENTRY = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "F16", "I32", "U64", "I8", "U8", "BF16"]),
        "shape": SIZES,
        "data_offsets": st.lists(st.integers(0, 64), min_size=2, max_size=2) | SIZES,
    }
)


@given(JSON, st.binary(max_size=40))
def test_any_json_as_the_header(header: Any, body: bytes) -> None:
    decoded(blob_of(header, body))


@given(JSON, st.dictionaries(st.text(max_size=4), ENTRY | JSON, max_size=3), st.binary(max_size=80))
def test_any_metadata_and_any_arrays(meta: Any, arrays: dict[str, Any], body: bytes) -> None:
    decoded(blob_of({"__metadata__": {"ferret": json.dumps(meta)}, **arrays}, body))
    decoded(blob_of({"__metadata__": {"ferret": json.dumps(META.model_dump())}, **arrays}, body))


@given(st.dictionaries(st.sampled_from(sorted(ContributionMeta.model_fields)), JSON))
@example({"examples": 10**400})
@example({"metrics": {"train_loss": 10**400}})
@example({"metrics": {"train_loss": "1e999"}})
def test_any_values_in_the_metadata(changes: dict[str, Any]) -> None:
    decoded(encode({}, {**META.model_dump(mode="json"), **changes}) if _is_json(changes) else b"")


def _is_json(value: Any) -> bool:
    try:
        encode({}, {"value": value})
    except ValueError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_million_blobs_guided_by_coverage(tmp_path: Path, need: Callable[[bool, str], None]) -> None:
    """atheris mutates valid blobs and keeps what reaches new code; an untyped error ends it with a crash."""
    need(_has_atheris(), "atheris, which make setup installs where it has a wheel")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "valid").write_bytes(BLOB)
    (corpus / "empty").write_bytes(with_array([0, 2, 3]))
    # The peak of the process that starts it counts as resident: only its single allocations can be limited.
    limits = ["-rss_limit_mb=0", "-malloc_limit_mb=1024"]
    command = [
        sys.executable,
        str(HARNESS),
        "-runs=1000000",
        "-max_len=2048",
        "-seed=1",
        "-verbosity=1",
        *limits,
        str(corpus),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done 1000000 runs" in done.stderr, done.stderr[-1000:]


def _has_atheris() -> bool:
    return subprocess.run([sys.executable, "-c", "import atheris"], capture_output=True, check=False).returncode == 0
