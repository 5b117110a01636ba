"""What ``ferret simulate`` shows of a simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferret_cli.progress import RoundLine

if TYPE_CHECKING:
    from ferret_core.simulate import RoundResult, SimulationResult


def line(done: RoundResult, rounds: int) -> RoundLine:
    """One finished round as a line of progress."""
    accepted = max(len(done.accepted), 1)
    taking_part = max(len(done.accepted) + len(done.rejected), 1)
    return RoundLine(done.number, rounds, done.metrics, done.bytes_up / accepted, done.bytes_down / taking_part)


def document(result: SimulationResult, out: Path | None) -> dict[str, Any]:
    """The simulation as one JSON document; byte counts are sums over a round's participants."""
    return {
        "digest": result.digest,
        "checkpoint": None if out is None else str(out.resolve()),
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
