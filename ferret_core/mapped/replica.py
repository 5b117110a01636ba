"""A replica whose weights lie in files: the memory it takes does not grow with the model.

A generation is a set of the model's files. The one that a round starts from stays as it is: it is what the round can go
back to, and a checkpoint may be made of it by links alone. The round moves a copy, which is the next generation.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ferret_core import catalog
from ferret_core.algorithms.configs._base import Shardable
from ferret_core.mapped import shards
from ferret_core.mapped.folder import OwnFolder, copy, link
from ferret_core.mapped.pool import Pool, Round
from ferret_core.models.load import LoadedModel, skeleton
from ferret_core.models.parameters import trainable
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec
from ferret_core.replica import Replica, Standing

MANIFEST = "ferret.json"


def obstacle(spec: ExperimentSpec) -> str | None:
    """What keeps an experiment's weights out of files: what it needs besides in memory. None if nothing does."""
    if not isinstance(catalog.algorithm_config(spec.algorithm), Shardable):
        return f"algorithm {spec.algorithm.name}"
    if spec.server.optimizer != "sgd" or spec.server.momentum:
        return f"server.optimizer = {spec.server.optimizer!r} with momentum"
    if spec.server.average != "none":
        return f"server.average = {spec.server.average!r}"
    if spec.server.takes_back:
        return f"server.development_by = {spec.server.development_by!r}"
    return None


class MappedReplica(Replica):
    """A replica in files of ``root``, moved by ``processes`` processes, of which this is one."""

    def __init__(self, spec: ExperimentSpec, source: Path, root: Path, processes: int = 1) -> None:
        """The base model from ``source``, a folder in Hugging Face layout whose files stay as they are.

        Raises ``model.invalid`` where its files do not cover the model, and ``storage.full``.
        """
        empty = skeleton(ModelSpec(source=str(source), dtype=spec.model.dtype), anywhere=True)
        assert empty is not None
        self._arrays = shards.arrays(source)
        wanted = {name: tuple(parameter.shape) for name, parameter in empty.model.named_parameters()}
        shards.check_cover(wanted, getattr(torch, spec.model.dtype), self._arrays)
        self._own = OwnFolder(root)
        self._number = 0
        self._keep(source)
        self._fill(empty)
        super().__init__(spec, empty)
        self._moves_here = False
        self._stored = _stored_names(self.model)
        self.pool = Pool(spec, {name: self._stored[name] for name in self.shapes}, self.shapes, processes)

    def standing(self) -> Standing:
        """The files as they are, for :meth:`restore`; what moves from here on is a copy of them."""
        weights = {name: weight.detach() for name, weight in trainable(self.model).items()}
        self._next_generation()
        return Standing(weights, self.state, self.optimizer.moments(), self.last, self.round, self.numbers, self.digest)

    def move(self, update: bytes, halvings: int = 0, taken_back: int = 0) -> None:
        if not self._moves_here:
            self._next_generation()
        with self.pool.moving(Round(self._generation, update, self.state, self.round + 1, 0.5**halvings)):
            super().move(update, halvings, taken_back)

    def save(self, folder: Path) -> None:
        """The model's and the tokenizer's files in ``folder``: small ones as the base model's, weights as links."""
        for path in self._own.path.iterdir():
            if path.is_file() and path.name != "lock":
                shutil.copyfile(path, folder / path.name)
        for path in self._generation.iterdir():
            link(path, folder / path.name)
        self._moves_here = False

    @property
    def _generation(self) -> Path:
        return self._own.path / str(self._number)

    def _keep(self, source: Path) -> None:
        """Takes the base model's files under names of its own, which stay when ``source`` goes."""
        self._generation.mkdir()
        for path in source.iterdir():
            if path.suffix == shards.SUFFIX:
                link(path, self._generation / path.name)
            elif path.is_file() and path.name != MANIFEST:
                shutil.copyfile(path, self._own.path / path.name)

    def _fill(self, empty: LoadedModel) -> None:
        """Gives the model its weights."""
        model: Any = empty.model
        mapped = shards.tensors(self._generation, self._arrays, writable=False)
        model.load_state_dict(mapped, strict=False, assign=True)
        model.tie_weights()

    def _next_generation(self) -> None:
        """Puts the model on a copy of its files, and drops the names of those before."""
        before = self._generation
        self._number += 1
        self._generation.mkdir()
        try:
            for path in before.iterdir():
                copy(path, self._generation / path.name)
        except FerretError:
            shutil.rmtree(self._generation)
            self._number -= 1
            raise
        mapped = shards.tensors(self._generation, self._arrays, writable=True)
        for name, parameter in trainable(self.model).items():
            parameter.data = mapped[self._stored[name]]
        shutil.rmtree(before)
        self._moves_here = True


def _stored_names(model: nn.Module) -> dict[str, str]:
    """The name that each parameter has in the files, by every name that it has: tied ones are stored once."""
    first = {id(parameter): name for name, parameter in model.named_parameters()}
    return {name: first[id(parameter)] for name, parameter in model.named_parameters(remove_duplicate=False)}
