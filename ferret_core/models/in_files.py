"""A model whose weights are pages of its own files: the system reads what is needed, and drops it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ferret_core.models.arrays import arrays, tensors
from ferret_core.models.load import LoadedModel, skeleton
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec


def load_in_files(spec: ModelSpec, *, anywhere: bool = False) -> LoadedModel | None:
    """The model of ``spec`` in its ``dtype``, in evaluation mode, without memory for its weights.

    A weight that is written to gets memory of its own; the files stay as they are. None for a name on the hub, and
    where the files have other arrays than the model, or of another type. Raises as
    :func:`ferret_core.models.load.load`.
    """
    empty = skeleton(spec, anywhere=anywhere)
    if empty is None:
        return None
    stored, dtype = stored_in(Path(spec.source).expanduser()), getattr(torch, spec.dtype)
    if not is_stored_so(empty.model, stored) or any(array.dtype != dtype for array in stored.values()):
        return None
    fill(empty.model, stored)
    return empty


def stored_in(folder: Path) -> Mapping[str, Tensor]:
    """Every array in the folder's weights, mapped; none where they cannot be told by name, or are of other types."""
    try:
        return tensors(folder, arrays(folder), private=True)
    except FerretError:
        return {}


def is_stored_so(model: nn.Module, stored: Mapping[str, Tensor]) -> bool:
    """Whether the files have each parameter, tied ones once, by its own name and shape, and nothing else."""
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    rest = set(model.state_dict()) - {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return not rest and shapes == {name: array.shape for name, array in stored.items()}


def fill(model: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Gives the parameters of a model without numbers the memory of what is ``stored`` under their names."""
    whole: Any = model
    whole.load_state_dict(stored, strict=False, assign=True)
    whole.tie_weights()
