"""The optimizers of ``torch.optim`` by name: those that make a step of the gradients that one pass has left."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import torch
from pydantic import AfterValidator, Field
from torch import nn
from torch.optim import Optimizer

Option = bool | int | float | str | tuple[float, ...]
Options = Mapping[str, Option]

UNSUITED = {
    "lbfgs": "it computes the loss several times in one step",
    "muon": "it takes matrices alone, and models have vectors too",
    "sparseadam": "it needs sparse gradients",
}
OPTIMIZERS: dict[str, type[Optimizer]] = {
    name: found
    for name, found in sorted((name.lower(), found) for name, found in vars(torch.optim).items() if name[0].isupper())
    if found is not Optimizer and name not in UNSUITED
}
NO_OPTIONS = ("params", "lr", "weight_decay", "capturable", "differentiable")
"""Arguments that are fields of their own, and those that change nothing but how torch compiles and differentiates."""


def known(name: str) -> str:
    """``name``, if an optimizer has it; else a ``ValueError`` with those there are."""
    if name in OPTIMIZERS:
        return name
    why = f"{name} cannot be used, {UNSUITED[name]}" if name in UNSUITED else f"torch.optim has no {name!r}"
    raise ValueError(f"{why}: choose one of {', '.join(OPTIMIZERS)}")


OptimizerName = Annotated[str, AfterValidator(known), Field(json_schema_extra={"enum": list(OPTIMIZERS)})]


def decays(optimizer: str) -> bool:
    """Whether it knows a weight decay."""
    return "weight_decay" in inspect.signature(OPTIMIZERS[optimizer]).parameters


def options_of(optimizer: str) -> dict[str, Any]:
    """An optimizer's own options with their defaults; SGD's momentum is a field of ``LocalConfig``."""
    left_out = (*NO_OPTIONS, "momentum") if optimizer == "sgd" else NO_OPTIONS
    parameters = inspect.signature(OPTIMIZERS[optimizer]).parameters
    return {name: parameter.default for name, parameter in parameters.items() if name not in left_out}


def check(optimizer: str, learning_rate: float, weight_decay: float, momentum: float, options: Options) -> None:
    """A ``ValueError`` that names the option which the optimizer does not have, or not with this value.

    Torch itself has the last word: one number is put under the optimizer, to see whether it takes the options.
    """
    there = options_of(optimizer)
    for name, value in options.items():
        if name not in there:
            raise ValueError(f"{name} is no option of {optimizer}: choose from {', '.join(sorted(there))}")
        if (wanted := _mismatch(value, there[name])) is not None:
            raise ValueError(f"{name} = {value!r}: {optimizer} takes {wanted}")
    try:
        build(optimizer, [nn.Parameter(torch.zeros(1))], learning_rate, weight_decay, momentum, options)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"{optimizer} refuses {dict(options)}: {error}") from error


def build(
    optimizer: str,
    parameters: Iterable[nn.Parameter],
    learning_rate: float,
    weight_decay: float,
    momentum: float,
    options: Options,
) -> Optimizer:
    """The optimizer over ``parameters``; momentum is SGD's, weight decay of those that know one."""
    common = {"weight_decay": weight_decay} if decays(optimizer) else {}
    own = {"momentum": momentum} if optimizer == "sgd" else {}
    arguments: dict[str, Any] = {"lr": learning_rate, **common, **own, **options}
    return OPTIMIZERS[optimizer](parameters, **arguments)


def _mismatch(value: Option, default: Any) -> str | None:
    """What a value like ``default`` would be, where ``value`` is none; torch takes much for true or for a number."""
    match default:
        case bool() | None:
            return None if isinstance(value, bool) else "true or false"
        case tuple():
            fits = isinstance(value, tuple) and len(value) == len(default)
            return None if fits else f"{len(default)} numbers, as {list(default)} by default"
        case int() | float():
            return None if isinstance(value, int | float) and not isinstance(value, bool) else "a number"
        case _:
            return None
