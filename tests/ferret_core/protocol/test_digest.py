from __future__ import annotations

from pathlib import Path

from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from ferret_core.protocol.digest import canonical_json, derive_seed, digest_bytes, digest_file


def test_a_file_has_the_digest_of_its_bytes(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(data)
    assert digest_file(tmp_path / "file") == digest_bytes(data) == blake3(data).hexdigest()


def test_canonical_json_has_one_spelling() -> None:
    assert canonical_json({"b": [1, "ü"], "a": None}) == '{"a":null,"b":[1,"ü"]}'.encode()


@given(st.lists(st.one_of(st.integers(0, 2**63), st.text(max_size=5)), min_size=1, max_size=4))
def test_derived_seeds_are_64_bits_and_depend_on_every_part(parts: list[str | int]) -> None:
    seed = derive_seed(*parts)
    assert 0 <= seed < 2**64
    assert seed != derive_seed(*parts, 0)
    assert derive_seed("1") != derive_seed(1)
