"""Check, before anything is loaded, that a team can train a specification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ferret_core import catalog
from ferret_core.algorithms.configs._base import Shardable, WatchesSteps
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec

ALONE = "train it with one process"
PLAIN = "a team moves the model by plain steps"


class _Unfit(NamedTuple):
    field: str
    value: Any
    message: str


def require_fit(spec: ExperimentSpec) -> None:
    """Raises ``request.invalid``, with the field to change, for options that need the whole model in one process."""
    for unfit in _unfit(spec):
        raise FerretError.of_field("request.invalid", *unfit)


def _unfit(spec: ExperimentSpec) -> Iterator[_Unfit]:
    yield from _unfit_algorithm(spec)
    if spec.model.dtype != "float32":
        yield _Unfit("model.dtype", spec.model.dtype, 'a team holds fp32 weights: choose "float32"')
    if spec.server.optimizer != "sgd":
        yield _Unfit("server.optimizer", spec.server.optimizer, f'{PLAIN}: choose "sgd", or {ALONE}')
    if spec.server.momentum:
        yield _Unfit("server.momentum", spec.server.momentum, f"{PLAIN}: set it to 0, or {ALONE}")
    if spec.robust.rule == "agree":
        yield _Unfit("robust.rule", spec.robust.rule, f"compares whole updates: choose another rule, or {ALONE}")


def _unfit_algorithm(spec: ExperimentSpec) -> Iterator[_Unfit]:
    config: Any = catalog.algorithm_config(spec.algorithm)
    options, name = config.model_dump(), spec.algorithm.name
    if getattr(config, "adapts", False):
        yield _Unfit("algorithm.name", name, f"tunes adapters, which a team does not hold in shards: {ALONE}")
    if not isinstance(config, Shardable):  # pyrefly: ignore[unsafe-overlap]
        yield _Unfit("algorithm.name", name, f"needs the whole model in one process: {ALONE}")
    if isinstance(config, WatchesSteps) and config.watches_steps:
        message = f"uses whole gradients: choose another, or {ALONE}"
        yield _Unfit("algorithm.allocation", options.get("allocation"), message)
    if options.get("local", {}).get("in_backward"):
        message = f"a team steps after the backward pass: set it to false, or {ALONE}"
        yield _Unfit("algorithm.local.in_backward", True, message)
