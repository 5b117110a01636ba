"""Weights in safetensors files as tensors that share the files' memory: nothing is read before it is needed."""

from __future__ import annotations

import json
import mmap
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ferret_core.protocol.errors import FerretError

SUFFIX = ".safetensors"
DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
_HEADER_LENGTH = 8


class Array(NamedTuple):
    """An array of a file: elements of ``dtype`` from byte ``begin`` of it."""

    file: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int

    @property
    def elements(self) -> int:
        return torch.Size(self.shape).numel()

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.itemsize


def arrays(folder: Path) -> dict[str, Array]:
    """Returns every array in the folder's safetensors files, by name (format: https://huggingface.co/docs/safetensors).

    The folder must have been checked (:mod:`ferret_core.models.untrusted_folder`). Raises ``model.invalid`` for an
    array in two files, and for a type that is not supported for weights.
    """
    found: dict[str, Array] = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_HEADER_LENGTH), "little")
            header = json.loads(file.read(length))
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            if name in found or entry["dtype"] not in DTYPES:
                raise _unfit(name, f"{path.name} has it as {entry['dtype']}", "once, as F32, BF16 or F16")
            begin = _HEADER_LENGTH + length + entry["data_offsets"][0]
            found[name] = Array(path.name, DTYPES[entry["dtype"]], tuple(entry["shape"]), begin)
    return found


def check_cover(shapes: Mapping[str, tuple[int, ...]], dtype: torch.dtype, stored: Mapping[str, Array]) -> None:
    """Raises ``model.invalid`` unless the files have every parameter with its shape, and all of them as ``dtype``."""
    for name, shape in shapes.items():
        if name not in stored:
            raise _unfit(name, "no file has it", "in the folder's safetensors files")
        array = stored[name]
        if (array.shape, array.dtype) != (shape, dtype):
            raise _unfit(name, f"{array.file} has {array.dtype} {array.shape}", f"{dtype} {shape}")


def tensors(folder: Path, stored: Mapping[str, Array]) -> dict[str, Tensor]:
    """Returns each array as a read-only tensor in its file's memory; writing to it kills the process."""
    mappings: dict[str, mmap.mmap] = {}
    for name in {array.file for array in stored.values()}:
        with (folder / name).open("rb") as file:
            mappings[name] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given buffer is not writable")  # this is intended
        return {name: _tensor(mappings[array.file], array) for name, array in stored.items()}


def _tensor(mapping: mmap.mmap, array: Array) -> Tensor:
    if not array.elements:
        return torch.empty(array.shape, dtype=array.dtype)
    return torch.frombuffer(mapping, dtype=array.dtype, count=array.elements, offset=array.begin).view(array.shape)


def _unfit(name: str, found: str, wanted: str) -> FerretError:
    return FerretError.of_field(
        "model.invalid", name, found, f"needs to be there {wanted}: set FERRET_WEIGHTS_IN=memory"
    )
