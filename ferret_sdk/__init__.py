"""Ferret from Python: submit experiments to a server, follow them, or take part in one. Importing it loads no torch."""

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_sdk.participant import Participant
from ferret_sdk.run import Run
from ferret_sdk.service import Service

__all__ = ["ExperimentSpec", "FerretError", "Participant", "Run", "Service"]
