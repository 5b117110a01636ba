"""Each process reads its own rows; where the files have other arrays, the whole model is loaded in turn."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from ferret_core.replica.replica import Replica
from tests.ferret_core.replicas import SpecFactory


@pytest.mark.slow
def test_a_model_is_loaded_in_shards_from_its_files_or_in_turn(
    in_team: Callable[..., list[Any]], toy_spec: SpecFactory, tiny_model_dir: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny_model_dir, other)
    arrays = load_file(other / "model.safetensors")
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"].clone()  # tied, and yet stored twice
    save_file(arrays, other / "model.safetensors", {"format": "pt"})
    broken = tmp_path / "broken"
    shutil.copytree(tiny_model_dir, broken)
    (broken / "model.safetensors").write_bytes(b"no weights")
    specs = [toy_spec(model={"source": str(folder)}) for folder in (tiny_model_dir, other, broken)]
    for number, spec in enumerate(specs):
        (tmp_path / f"{number}.json").write_text(spec.model_dump_json())
    plain, in_turn, refused, shards = in_team(
        2, *(["loaded", str(tmp_path / f"{number}.json")] for number in range(3)), ["shards"]
    )
    digest = Replica.load(specs[0]).digest
    for found in (plain, in_turn):
        assert (found["digest"], found["shards"]) == (digest, True)
        assert [int(here) for here in found["here"]] == [found["all"] // 2] * 2
    assert refused["code"] == "model.invalid"
    assert shards["held"] == ["(0, 9)", "(9, 15)"]
    everything = [float(element) for element in range(15)]
    assert shards["gathered"] == ["[None, None]", str([everything, everything[2:11]])]
    assert shards["spread"] == [2 * element for element in everything]
    assert shards["copied"] == everything
