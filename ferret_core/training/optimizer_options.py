"""The available optimizers, with their options and the options' ranges, listed without torch.

These are the optimizers of ``torch.optim`` that step from the gradients of one pass, and our own ``normalized``. A
specification is checked against this table without loading torch;
``tests/ferret_core/training/test_optimizer_options.py`` compares it with torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from ferret_core.protocol.limits import MAX_REAL, Label

_Whole = Annotated[int, Field(ge=-(10**12), le=10**12)]
_Real = Annotated[float, Field(ge=-MAX_REAL, le=MAX_REAL)]
Option = bool | _Whole | _Real | Label | Annotated[tuple[_Real, ...], Field(max_length=8)]
Options = Mapping[str, Option]

UNSUITED = {
    "lbfgs": "it computes the loss several times in one step",
    "muon": "it moves only matrices",
    "sparseadam": "it needs sparse gradients",
}
_COMMON = {"foreach": None, "maximize": False}
_ADAM = {"betas": (0.9, 0.999), "eps": 1e-8, **_COMMON}
OPTIMIZERS: dict[str, Mapping[str, Any]] = {
    "adadelta": {"rho": 0.9, "eps": 1e-6, **_COMMON},
    "adafactor": {"beta2_decay": -0.8, "eps": (None, 1e-3), "d": 1.0, **_COMMON},
    "adagrad": {"lr_decay": 0, "initial_accumulator_value": 0, "eps": 1e-10, "fused": None, **_COMMON},
    "adam": {**_ADAM, "amsgrad": False, "fused": None, "decoupled_weight_decay": False},
    "adamax": _ADAM,
    "adamw": {**_ADAM, "amsgrad": False, "fused": None},
    "asgd": {"lambd": 1e-4, "alpha": 0.75, "t0": 1e6, **_COMMON},
    "nadam": {**_ADAM, "momentum_decay": 4e-3, "decoupled_weight_decay": False},
    "normalized": {"normalize_per": "tensor"},
    "radam": {**_ADAM, "decoupled_weight_decay": False},
    "rmsprop": {"alpha": 0.99, "eps": 1e-8, "momentum": 0, "centered": False, **_COMMON},
    "rprop": {"etas": (0.5, 1.2), "step_sizes": (1e-6, 50), **_COMMON},
    "sgd": {"dampening": 0, "nesterov": False, "fused": None, **_COMMON},
}
"""Each optimizer's specific options with torch's defaults; rate, weight decay and momentum are separate fields."""
WITHOUT_DECAY = frozenset({"normalized", "rprop"})
WITH_MOMENTUM = frozenset({"normalized", "sgd"})


WORDS = {"normalize_per": ("tensor", "column")}
"""Allowed values of options that take a word."""
Numbers = tuple[float, ...]
_RANGES: dict[str, tuple[Callable[[Numbers], bool], str]] = {
    "beta2_decay": (lambda numbers: max(numbers) <= 0, "0 or less"),
    "betas": (lambda numbers: all(0 <= beta < 1 for beta in numbers), "numbers from 0 to below 1"),
    "d": (lambda numbers: min(numbers) >= 1, "1 or more"),
    "etas": (lambda numbers: 0 < numbers[0] < 1 < numbers[1], "one number between 0 and 1 and one above 1"),
    "rho": (lambda numbers: 0 <= min(numbers) <= max(numbers) <= 1, "a number from 0 to 1"),
    **dict.fromkeys(
        ("alpha", "eps", "initial_accumulator_value", "lr_decay", "momentum", "momentum_decay"),
        (lambda numbers: min(numbers) >= 0, "0 or more"),
    ),
}
"""Tests of an option's number or numbers, with descriptions."""


def known(name: str) -> str:
    """Returns ``name`` if such an optimizer exists; else raises a ``ValueError`` that lists the optimizers."""
    if name in OPTIMIZERS:
        return name
    why = f"{name} cannot be used, {UNSUITED[name]}" if name in UNSUITED else f"there is no optimizer {name!r}"
    raise ValueError(f"{why}: choose one of {', '.join(OPTIMIZERS)}")


OptimizerName = Annotated[Label, AfterValidator(known), Field(json_schema_extra={"enum": list(OPTIMIZERS)})]


def decays(optimizer: str) -> bool:
    """True if the optimizer has weight decay."""
    return optimizer not in WITHOUT_DECAY


def check(optimizer: str, momentum: float, options: Options) -> None:
    """Raises a ``ValueError`` that names an option that the optimizer does not have, or an invalid value."""
    there = OPTIMIZERS[optimizer]
    for name, value in options.items():
        if name not in there:
            raise ValueError(f"{name} is not an option of {optimizer}: choose from {', '.join(sorted(there))}")
        if (wanted := _mismatch(name, value, there[name])) is not None:
            raise ValueError(f"{name} = {value!r}: {optimizer} takes {wanted}")
    if options.get("nesterov") and (momentum == 0 or options.get("dampening")):
        raise ValueError("nesterov = True needs a momentum above 0, and dampening = 0")
    if options.get("fused") and options.get("foreach"):
        raise ValueError("fused = True and foreach = True exclude each other: give one")


def _mismatch(name: str, value: Option, default: Any) -> str | None:
    """Describes the expected type if ``value`` is not like ``default``; torch accepts many values as booleans or
    numbers."""
    match default:
        case bool() | None:
            return None if isinstance(value, bool) else "true or false"
        case tuple():
            if not isinstance(value, tuple) or len(value) != len(default):
                return f"{len(default)} numbers, as {list(default)} by default"
            return _outside(name, value)
        case str():
            return None if value in WORDS[name] else " or ".join(map(repr, WORDS[name]))
        case _:
            if isinstance(value, bool) or not isinstance(value, int | float):
                return "a number"
            return _outside(name, (value,))


def _outside(name: str, numbers: Numbers) -> str | None:
    """Describes the expected range if the option's numbers are outside it."""
    holds, words = _RANGES.get(name, (None, ""))
    return None if holds is None or holds(numbers) else words
