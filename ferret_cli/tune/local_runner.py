"""Runs a specification in this process, with no server."""

from __future__ import annotations

from ferret_cli.error_output import of_exception
from ferret_cli.simulation_output import line
from ferret_cli.tune.runner import OnRound
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import RoundResult, simulate


class _Told(Exception):
    """What ``on_round`` raised, told apart from what the simulation raises."""

    def __init__(self, raised: Exception) -> None:
        self.raised = raised


def run(spec: ExperimentSpec, key: str, on_round: OnRound) -> None:
    """See :class:`ferret_cli.tune.runner.Runner`; an error that nobody foresaw is the run's failure, ``internal``."""

    def tell(done: RoundResult) -> None:
        try:
            on_round(line(done, spec.rounds))
        except Exception as error:
            raise _Told(error) from error

    try:
        simulate(spec, on_round=tell)
    except _Told as told:
        raise told.raised from None
    except FerretError:
        raise
    except Exception as error:
        raise of_exception(error) from error
