"""Ferret from Python: submit experiments to a server, follow them, or take part in one. Importing it loads no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_sdk.service.run import Run
from ferret_sdk.service.service import Service

if TYPE_CHECKING:
    from ferret_core.client.hooks import Site
    from ferret_core.client.task_loop import tasks
    from ferret_sdk.participant.participant import Participant

__all__ = ["ExperimentSpec", "FerretError", "Participant", "Run", "Service", "Site", "tasks"]


def __dir__() -> list[str]:
    """The public names alone, for completion in a shell or notebook."""
    return __all__


def __getattr__(name: str) -> Any:
    """Imports ``Participant``, ``Site`` and ``tasks`` on first use: they load NumPy, which submitting does not need."""
    if name == "Participant":
        from ferret_sdk.participant.participant import Participant

        return Participant
    if name == "Site":
        from ferret_core.client.hooks import Site

        return Site
    if name == "tasks":
        from ferret_core.client.task_loop import tasks

        return tasks
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
