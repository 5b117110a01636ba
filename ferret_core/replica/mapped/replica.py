"""A replica with weights in files: its memory does not grow with the model.

A round reads one generation of the model's files and writes the next. The previous one stays unchanged: the round can
be undone without a copy, and a checkpoint consists of links.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ferret_core.models.load import LoadedModel, skeleton
from ferret_core.models.parameters import trainable
from ferret_core.models.safetensors_map import SUFFIX, arrays, check_cover, tensors
from ferret_core.models.untrusted_folder import CONFIG
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec
from ferret_core.replica.checkpoint import MANIFEST
from ferret_core.replica.mapped.model_files import LOCK, ScratchFolder, link, prepare
from ferret_core.replica.mapped.process_pool import MoveRequest, ProcessPool
from ferret_core.replica.replica import Replica, ReplicaState

SPARE = "spare"
"""Folder of a generation that is overwritten next."""


class MappedReplica(Replica):
    """A replica in files below ``root``, moved by ``processes`` processes, including this one."""

    def __init__(self, spec: ExperimentSpec, source: Path, root: Path, processes: int = 1) -> None:
        """Loads the base model from ``source``, a folder in Hugging Face layout, which stays unchanged.

        Raises ``model.invalid`` if its files do not cover the model, and ``storage.full``.
        """
        empty = skeleton(ModelSpec(source=str(source), dtype=spec.model.dtype), anywhere=True)
        assert empty is not None
        self._arrays = arrays(source)
        wanted = {name: tuple(parameter.shape) for name, parameter in empty.model.named_parameters()}
        check_cover(wanted, getattr(torch, spec.model.dtype), self._arrays)
        self._own = ScratchFolder(root)
        self._here = self._kept = 0
        self._keep(source)
        self._fill(empty)
        super().__init__(spec, empty)
        stored = _stored_names(self.model)
        self._names = {name: stored[name] for name in self.shapes}
        self.pool = ProcessPool(spec, self._names, self.shapes, processes)

    def snapshot(self) -> ReplicaState:
        """Keeps the current files for :meth:`restore`, without a copy. An earlier snapshot becomes invalid."""
        self._kept = self._here
        self._drop_others()
        weights = {name: weight.detach() for name, weight in trainable(self.model).items()}
        return ReplicaState(weights, self.state, self.optimizer.moments(), self.round, self.numbers, self.digest)

    def restore_weights(self, weights: Mapping[str, Tensor]) -> None:
        self._here = self._kept
        self._show(weights)
        self._drop_others()

    def apply(self, update: bytes, halvings: int = 0) -> None:
        before, after = self._generation(self._here), self._generation(self._here + 1)
        self._make(before, after)
        moved = MoveRequest(before, after, update, self.state, self.round + 1, 0.5**halvings)
        with self.pool.moving(moved, self._arrays):
            super().apply(update, halvings)
        self._here += 1
        mapped = tensors(after, self._arrays)
        self._show({name: mapped[stored] for name, stored in self._names.items()})
        self._drop_others()

    def save(self, folder: Path) -> None:
        """Writes the model's and the tokenizer's files into ``folder``.

        Small files are copies of the base model's, with the type of these weights in the configuration; weights are
        links.
        """
        for path in self._own.path.iterdir():
            if path.is_file() and path.name != LOCK:
                shutil.copyfile(path, folder / path.name)
        _name_dtype(folder / CONFIG, self.spec.model.dtype)
        for path in self._generation(self._here).iterdir():
            link(path, folder / path.name)

    def _generation(self, number: int) -> Path:
        return self._own.path / str(number)

    @property
    def _spare(self) -> Path:
        return self._own.path / SPARE

    def _keep(self, source: Path) -> None:
        """Links the base model's files to new names, which remain when ``source`` is deleted."""
        first = self._generation(self._here)
        first.mkdir()
        for path in source.iterdir():
            if path.suffix == SUFFIX:
                link(path, first / path.name)
            elif path.is_file() and path.name != MANIFEST:
                shutil.copyfile(path, self._own.path / path.name)

    def _fill(self, empty: LoadedModel) -> None:
        """Assigns the mapped weights to the model."""
        model: Any = empty.model
        mapped = tensors(self._generation(self._here), self._arrays)
        model.load_state_dict(mapped, strict=False, assign=True)
        model.tie_weights()

    def _show(self, weights: Mapping[str, Tensor]) -> None:
        for name, parameter in trainable(self.model).items():
            parameter.data = weights[name]

    def _make(self, before: Path, after: Path) -> None:
        """Creates files to write to: a spare generation with its allocated pages if there is one, else new files."""
        shutil.rmtree(after, ignore_errors=True)
        if self._spare.exists():
            self._spare.rename(after)
        else:
            prepare(before, after, self._arrays, frozenset(self._names.values()))

    def _drop_others(self) -> None:
        """Removes all files except the model's, the snapshot's and the spare ones."""
        needed = {str(self._here), str(self._kept), SPARE}
        for path in self._own.path.iterdir():
            if path.is_dir() and path.name not in needed:
                if self._spare.exists() or any(file.stat().st_nlink > 1 for file in path.iterdir()):
                    shutil.rmtree(path)
                else:
                    path.rename(self._spare)


def _name_dtype(path: Path, dtype: str) -> None:
    """Sets ``dtype`` as the type of the weights in the configuration at ``path``."""
    config = json.loads(path.read_bytes())
    config.pop("torch_dtype", None)  # older versions of the library wrote this name
    path.write_text(json.dumps({**config, "dtype": dtype}, indent=2) + "\n", encoding="utf-8")


def _stored_names(model: nn.Module) -> dict[str, str]:
    """Returns each parameter's name in the files, by all of its names: tied ones are stored once."""
    first = {id(parameter): name for name, parameter in model.named_parameters()}
    return {name: first[id(parameter)] for name, parameter in model.named_parameters(remove_duplicate=False)}
