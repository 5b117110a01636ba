"""Bases that an algorithm takes from public text, once: a file of the base model, covered by the replica's digest.

A gradient has other bits on every machine. The server computes it when it stores the base model; everyone else reads
the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from torch import nn

from ferret_core import catalog
from ferret_core.algorithms.base import StartsFromPublicText
from ferret_core.catalog import ResolvedExperiment
from ferret_core.datasets._validation_split import choose_development, without_validation
from ferret_core.datasets.tokenization.tokenize import longest, shard_of
from ferret_core.models.definition import BASES, Files
from ferret_core.models.load import LoadedModel, context_of
from ferret_core.models.parameters import shapes
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Arrays, decode, encode


def with_bases(spec: ExperimentSpec, loaded: LoadedModel, folder: Path | None = None) -> LoadedModel:
    """Returns ``loaded`` with the bases in ``folder``, a copy of the base model; without one, they are computed.

    The model is unchanged for an algorithm without bases. Raises ``model.invalid`` for a folder without them, and
    ``dataset.invalid`` if the dataset cannot spare the public examples.
    """
    experiment = ResolvedExperiment.of(spec)
    if not (wanted := experiment.traits.public_examples):
        return loaded
    if folder is not None:
        path = folder / BASES
        return _with(loaded, path.read_bytes()) if path.is_file() else loaded
    algorithm = cast(StartsFromPublicText, catalog.algorithm(experiment))
    _, validation = without_validation(catalog.dataset(spec.dataset), spec.evaluation.validation_share)
    tokenizer: Any = loaded.tokenizer
    tokens = longest(spec.prompt, tokenizer, context_of(loaded.model))
    examples = choose_development(validation, wanted, "algorithm.public_examples")
    public = shard_of(examples, tokenizer, tokens, spec.prompt.template)
    return _with(loaded, encode(algorithm.bases(loaded.model, public, derive_seed(spec.seed, "bases")), {}))


def bases_of(spec: ExperimentSpec, algorithm: object, model: nn.Module, files: Files) -> Arrays:
    """Returns the bases in ``files``, nothing for an algorithm without; ``model.invalid`` unless they fit ``model``.

    Everything is checked: a participant has the file from a server.
    """
    if not ResolvedExperiment.of(spec).traits.public_examples:
        return {}
    expected = cast(StartsFromPublicText, algorithm).basis_layouts(shapes(model))
    try:
        arrays = decode(files.get(BASES, b""))[0]
    except FerretError as error:
        raise _invalid(spec, f"its file {BASES} is missing or damaged ({error.detail})") from error
    if {name: (array.dtype, array.shape) for name, array in arrays.items()} != dict(expected):
        raise _invalid(spec, f"its file {BASES} holds other arrays than the algorithm's bases")
    return arrays


def _with(loaded: LoadedModel, bases: bytes) -> LoadedModel:
    return loaded._replace(files={**loaded.files, BASES: bases})


def _invalid(spec: ExperimentSpec, message: str) -> FerretError:
    message = f"{message}: start from the base model that the server stored with the experiment"
    return FerretError.of_field("model.invalid", "model.source", spec.model.source, message)
