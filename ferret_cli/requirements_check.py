"""Whether what a command needs is installed, asked without importing it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from ferret_core.protocol.errors import FerretError

SERVER_MODULES = ("ferret_db", "ferret_api", "ferret_worker")
INSTALL_SERVER = "pip install . (in a checkout of Ferret)"
INSTALL_TRAINING = "pip install './participant[train]' (in a checkout of Ferret)"
INSTALL_TUNING = "pip install './participant[train,tune]' (in a checkout of Ferret)"
INSTALL_DRAWING = "pip install './participant[train,draw]' (in a checkout of Ferret)"


def missing(modules: Iterable[str]) -> list[str]:
    """The top-level ``modules`` that cannot be imported."""
    return [name for name in modules if find_spec(name) is None]


def require_modules(modules: Iterable[str], install: str) -> None:
    """``dependency.missing`` with the command to install unless all ``modules`` are there."""
    if absent := missing(modules):
        raise FerretError("dependency.missing", f"{', '.join(absent)} is not installed; install it with: {install}")


def require_server() -> None:
    """The commands that run a server need its distribution; a participant's has only the core and the SDK."""
    require_modules(SERVER_MODULES, INSTALL_SERVER)


def require_training() -> None:
    """The commands that hold a model need torch, which submitting and watching do not."""
    require_modules(["torch", "transformers", "safetensors", "peft"], INSTALL_TRAINING)


def require_tuning() -> None:
    """The search over a specification's values, and its picture."""
    require_modules(["optuna", "tomli_w", "matplotlib"], INSTALL_TUNING)


def require_drawing() -> None:
    """The commands that draw figures of what they measure."""
    require_modules(["torch", "matplotlib"], INSTALL_DRAWING)
