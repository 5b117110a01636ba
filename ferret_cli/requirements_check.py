"""Checks that a command's requirements are installed, without importing them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from ferret_core.protocol.errors import FerretError

SERVER_MODULES = ("ferret_db", "ferret_api", "ferret_worker")
INSTALL_SERVER = "pip install ferret-service"
INSTALL_TRAINING = "pip install 'ferret-participant[train]'"
INSTALL_TUNING = "pip install 'ferret-participant[train,tune]'"
INSTALL_DRAWING = "pip install 'ferret-participant[train,draw]'"


def missing(modules: Iterable[str]) -> list[str]:
    """Returns the top-level ``modules`` that cannot be imported."""
    return [name for name in modules if find_spec(name) is None]


def require_modules(modules: Iterable[str], install: str) -> None:
    """Raises ``dependency.missing`` with the command to install unless all ``modules`` are installed."""
    if absent := missing(modules):
        raise FerretError("dependency.missing", f"not installed: {', '.join(absent)}; install with: {install}")


def require_server() -> None:
    """Checks for the server's distribution; a participant's installation has only the core and the SDK."""
    require_modules(SERVER_MODULES, INSTALL_SERVER)


def require_training() -> None:
    """Checks for torch, which submitting and watching do not need."""
    require_modules(["torch", "transformers", "safetensors", "peft"], INSTALL_TRAINING)


def require_tuning() -> None:
    """Checks for the search over a specification's values, and its plot."""
    require_modules(["optuna", "tomli_w", "matplotlib"], INSTALL_TUNING)


def require_drawing() -> None:
    """Checks for the packages that draw figures."""
    require_modules(["torch", "matplotlib"], INSTALL_DRAWING)
