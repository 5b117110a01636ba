"""What the demo gave, as one document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ferret_sdk.service.run import Run


def document(run: Run, checkpoint: Path | None, seconds: float) -> dict[str, Any]:
    """``bytes_up`` and ``bytes_down`` are means per participant and round, ``rouge_l`` is in percent."""
    experiment = run.experiment
    rounds = list(run.rounds())
    return {
        "id": experiment.id,
        "state": experiment.state.value,
        "rounds": experiment.round,
        "eval_loss": _first_and_last(run, "eval_loss"),
        "rouge_l": _first_and_last(run, "rouge_l"),
        "bytes_up": _mean(experiment.bytes_up, sum(round.accepted for round in rounds)),
        "bytes_down": _mean(experiment.bytes_down, sum(round.participants for round in rounds)),
        "seconds": round(seconds, 1),
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "digest": experiment.digest,
    }


def summary(result: dict[str, Any]) -> str:
    """The document as one sentence."""
    loss, rouge = result["eval_loss"], result["rouge_l"]
    if loss["last"] is None or rouge["last"] is None:
        return f"{result['id']} is {result['state']} after {result['seconds']} s"
    return (
        f"{result['rounds']} rounds in {result['seconds']} s: evaluation loss {loss['first']:.3f} → {loss['last']:.3f},"
        f" Rouge-L {rouge['first']:.1f} % → {rouge['last']:.1f} %, {result['bytes_up']} bytes per upload;"
        f" the model is in {result['checkpoint']}; ask it: ferret chat {result['checkpoint']}"
    )


def _first_and_last(run: Run, name: str) -> dict[str, float | None]:
    found = run.experiment.metrics.get(name)
    return {"first": found.first if found else None, "last": found.last if found else None}


def _mean(total: int, count: int) -> int:
    return round(total / count) if count else 0
