"""A model's weights where they lie: the safetensors files of a folder in Hugging Face layout, mapped into memory.

``project`` reads a base model so, and ``apply_`` moves a checkpoint in place, with none of it ever loaded::

    before = OnDisk(base, model)
    projected = project(before, trainable(model), blocks, basis, K, seed)
    with writing(checkpoint, model) as weights:
        apply_(weights, blocks, basis, [projected])

Pages come from the file when they are touched and go when the tensor does: they are the operating system's cache,
which gives way when memory is short, and never a copy.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast, final

import torch
from torch import Tensor, nn

from ferret_core.models.parameters import trainable
from ferret_core.models.safetensors_header import Stored, invalid, read, read_json
from ferret_core.protocol.errors import FerretError

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


@final
class OnDisk(Mapping[str, Tensor]):
    """Tensors by canonical name, each mapped when it is looked up and unmapped when it is no longer used.

    With a ``model``, for which the meta device will do, these are its :func:`trainable` parameters, a tied one under
    any of its names in the files: so frozen parameters and buffers, which files do not tell apart, are left out.
    Without, they are all floating-point tensors, under the files' names, sorted.

    Values written into these tensors stay in memory and do not reach the files, unless they are ``writable``: then
    the tensors are the files, at once and for every process that maps them. What is said elsewhere of the files'
    digests no longer holds then.

    Raises ``model.invalid`` for files that are missing, cut short or no safetensors, for tensors that the model and
    the files do not have in common, and for tensors that do not begin at a multiple of their element's size.
    """

    def __init__(self, folder: Path, model: nn.Module | None = None, *, writable: bool = False) -> None:
        files = _files(folder)
        self._tensors = _floating(files) if model is None else _of_model(files, model, folder)
        self._writable = writable
        for name, stored in self._tensors.items():
            if stored.begin % stored.dtype.itemsize:
                raise invalid(stored.path, name, stored.begin, "its bytes are not aligned: load the model and save it")

    def __getitem__(self, name: str) -> Tensor:
        return _mapped(self._tensors[name], self._writable)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def flush(self) -> None:
        """Returns when all that was written so far is on the disk."""
        for path in sorted({stored.path for stored in self._tensors.values()}):
            with path.open("r+b") as file:
                os.fsync(file.fileno())


@contextmanager
def writing(folder: Path, model: nn.Module | None = None) -> Generator[OnDisk]:
    """The writable tensors of ``folder``; what was written into them is on the disk when the block ends."""
    weights = OnDisk(folder, model, writable=True)
    try:
        yield weights
    finally:
        weights.flush()


def _mapped(stored: Stored, writable: bool) -> Tensor:
    """A mapping begins at a whole page, so a few bytes before the tensor's come with it."""
    if stored.begin == stored.end:
        return torch.empty(stored.shape, dtype=stored.dtype)
    skip = stored.begin % mmap.ALLOCATIONGRANULARITY
    # A private mapping to read from counts as writable, which spares torch's warning; its pages are still the file's.
    mode, access = ("r+b", mmap.ACCESS_WRITE) if writable else ("rb", mmap.ACCESS_COPY)
    with stored.path.open(mode) as file:
        pages = mmap.mmap(file.fileno(), stored.end - stored.begin + skip, access=access, offset=stored.begin - skip)
    return torch.frombuffer(pages, dtype=stored.dtype, offset=skip).view(stored.shape)


def _files(folder: Path) -> dict[str, Stored]:
    """Every tensor of the folder under its name there: from the one file, or from the shards of the index."""
    if (folder / SINGLE).is_file():
        return read(folder / SINGLE)
    index = _index(folder)
    shards = {file: read(folder / file) for file in sorted(set(index.values()))}
    for name, file in index.items():
        if name not in shards[file]:
            raise invalid(folder / INDEX, name, file, "that file holds no such tensor: copy the model again")
    return {name: shards[file][name] for name, file in index.items()}


def _index(folder: Path) -> dict[str, str]:
    path = folder / INDEX
    if not path.is_file():
        raise FerretError.of_field("model.invalid", "folder", str(folder), f"holds neither {SINGLE} nor {INDEX}")
    index = read_json(path, path.read_bytes()).get("weight_map")
    if not isinstance(index, dict):
        raise invalid(path, "weight_map", None, "is missing")
    for name, file in cast(dict[str, Any], index).items():
        if not isinstance(file, str) or Path(file).name != file:
            raise invalid(path, name, str(file), "is not the name of a file in this folder")
    return cast(dict[str, str], index)


def _floating(files: Mapping[str, Stored]) -> dict[str, Stored]:
    return {name: stored for name, stored in sorted(files.items()) if stored.dtype.is_floating_point}


def _of_model(files: Mapping[str, Stored], model: nn.Module, folder: Path) -> dict[str, Stored]:
    """The file's tensor for each of the model's trainable parameters, whichever of its names it stands under."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    found: dict[str, Stored] = {}
    for name, parameter in trainable(model).items():
        copies = [files[other] for other in names[id(parameter)] if other in files]
        if len(copies) != 1:
            raise FerretError.of_field(
                "model.invalid", name, str(folder), f"holds it {len(copies)} times: load the model and save it there"
            )
        if copies[0].shape != tuple(parameter.shape):
            raise invalid(copies[0].path, name, copies[0].shape, f"the model's has shape {tuple(parameter.shape)}")
        found[name] = copies[0]
    return found
