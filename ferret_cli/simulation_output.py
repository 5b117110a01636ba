"""Output of ``ferret simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferret_cli.round_progress import RoundLine
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.metrics import metric
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.model_card import Facts, Figures

if TYPE_CHECKING:
    from ferret_core.simulate import RoundResult, SimulationResult


def line(done: RoundResult, rounds: int) -> RoundLine:
    """Returns one finished round as a line of progress."""
    accepted = max(len(done.accepted), 1)
    taking_part = max(len(done.accepted) + len(done.rejected), 1)
    return RoundLine(done.number, rounds, done.metrics, done.bytes_up / accepted, done.bytes_down / taking_part)


def facts(spec: ExperimentSpec, result: SimulationResult) -> Facts:
    """Returns the facts for the model card of the last round's checkpoint."""
    names = {name for done in result.rounds for name in done.metrics}
    return Facts(
        experiment=SIMULATION,
        spec=spec,
        round=result.rounds[-1].number,
        rounds=spec.rounds,
        participants=spec.participants.simulated,
        digest=result.digest,
        base_digest=result.rounds[0].digest,
        metrics={name: _figures(name, result) for name in names},
    )


def _figures(name: str, result: SimulationResult) -> Figures:
    values = [done.metrics[name] for done in result.rounds if name in done.metrics]
    entry = metric(name)
    return Figures(values[0], values[-1], entry.best(min(values), max(values)) if entry else None)


def document(result: SimulationResult, out: Path | None) -> dict[str, Any]:
    """Returns the simulation as one JSON document; byte counts are sums over a round's participants."""
    return {
        "digest": result.digest,
        "checkpoint": None if out is None else str(out.resolve()),
        "stopped": result.stopped and result.stopped.detail,
        "decline": result.decline and result.decline.detail,
        "rounds": [
            {
                "number": done.number,
                "digest": done.digest,
                "metrics": done.metrics,
                "cost": done.cost,
                "bytes_up": done.bytes_up,
                "bytes_down": done.bytes_down,
                "accepted": done.accepted,
                "rejected": {name: error.to_json() for name, error in done.rejected.items()},
            }
            for done in result.rounds
        ],
    }
