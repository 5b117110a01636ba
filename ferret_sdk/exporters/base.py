"""The interface of all export tools, and their shared input."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol, cast

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ExperimentState
from ferret_sdk.service.measured_rounds import MeasuredRound

Scalar = str | int | float | bool


class Destination(Protocol):
    """An experiment in a tool."""

    def rounds(self) -> frozenset[int]:
        """Returns the numbers of the rounds that are written completely."""
        ...

    def write(self, row: MeasuredRound) -> None:
        """Adds a round. Existing parts of it stay as they are."""
        ...

    def close(self, state: ExperimentState) -> None:
        """Waits until everything written has arrived. The experiment is in this ``state``."""
        ...


def required(module: str, package: str) -> Any:
    """Imports the tool's ``module``. Raises ``dependency.missing``, naming the ``package``, if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        message = f"{error.name or module} is not installed: pip install '{package}'"
        raise FerretError("dependency.missing", message) from error


@contextmanager
def reported(tool: str) -> Generator[None]:
    """Converts the tool's exceptions in the ``with`` block to ``export.failed``."""
    try:
        yield
    except FerretError:
        raise
    except Exception as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        detail = f"{tool} says: {why}; the written rounds stay: run the same command again to continue"
        raise FerretError("export.failed", detail) from error


def finite(row: MeasuredRound) -> dict[str, float]:
    """Returns the round's finite metrics."""
    return {name: value for name, value in row.metrics.items() if math.isfinite(value)}


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Scalar]:
    """Returns the specification by dotted names, without unset values; lists are JSON."""
    found: dict[str, Scalar] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            found |= flat(cast(Mapping[str, Any], value), f"{prefix}{name}.")
        elif value is not None:
            found[f"{prefix}{name}"] = value if isinstance(value, str | int | float) else json.dumps(value)
    return found
