"""Weights in safetensors files, as tensors in the files' memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from ferret_core.models.safetensors_map import arrays, tensors
from tests.refusals import refused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files with arrays of every type, of no element and of no dimension too."""
    first = {"a": torch.randn(3, 5), "half": torch.randn(7).half(), "none": torch.empty(0, 4)}
    save_file(first, tmp_path / "1.safetensors", {"format": "pt"})
    save_file({"brain": torch.randn(2, 3).bfloat16(), "one": torch.tensor(2.5)}, tmp_path / "2.safetensors")
    return tmp_path


def read(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "1.safetensors") | load_file(folder / "2.safetensors")


def test_they_are_what_the_files_hold(folder: Path) -> None:
    found = tensors(folder, arrays(folder))
    expected = read(folder)
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        assert tensor.dtype == expected[name].dtype
        assert torch.equal(tensor, expected[name])


def test_an_array_in_two_files_is_refused(folder: Path) -> None:
    save_file({"a": torch.zeros(1)}, folder / "3.safetensors")
    with refused("model.invalid", "3.safetensors"):
        arrays(folder)


def test_a_type_that_weights_cannot_have_is_refused(folder: Path) -> None:
    save_file({"ids": torch.zeros(1, dtype=torch.int64)}, folder / "3.safetensors")
    with refused("model.invalid", "64"):
        arrays(folder)
