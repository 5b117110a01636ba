"""The trials of a search on the validation split, as tables: every row with every candidate, the best of each
marked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from ferret_bench.reproduce.reruns import markdown
from ferret_bench.reproduce.reruns.quantity import EVAL_LOSS
from ferret_bench.reproduce.reruns.record import Record
from ferret_bench.reproduce.reruns.settings import Row

Losses = Mapping[str, float]
"""By candidate: the mean loss of its runs after the last round, infinite where one failed."""


def tables(rows: Sequence[Row], runs: Iterable[Record]) -> Iterator[str]:
    """One table for rows with the same candidates; the candidates' order is that of the runs."""
    labels = {row.name: row.label for row in rows}
    by_row: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        if run.row in labels:
            by_row.setdefault(run.row, {}).setdefault(_candidate(run), []).append(validation_loss(run))
    by_candidates: dict[tuple[str, ...], dict[str, Losses]] = {}
    for row in (row for row in labels if row in by_row):
        losses = {candidate: fmean(found) for candidate, found in by_row[row].items()}
        by_candidates.setdefault(tuple(losses), {})[row] = losses
    for candidates, found in by_candidates.items():
        lines = [[labels[row], *_cells(losses)] for row, losses in found.items()]
        yield markdown.table(["Loss on the validation split", *candidates], lines, left=1)


def validation_loss(run: Record) -> float:
    """Returns the loss after the last round, infinite if the run failed."""
    loss = EVAL_LOSS.of(run) if run.error is None else None
    return math.inf if loss is None or not math.isfinite(loss) else loss


def _candidate(run: Record) -> str:
    """Returns ``adam 0.0001``, with momentum and options if set; rate and distance if losses are compared."""
    local = run.spec["algorithm"]["local"]
    rate = f"{local['learning_rate']:g}"
    if "optimizer" not in local:
        return f"{rate}, ε = {local['epsilon']:g}"
    more = {**({"momentum": local["momentum"]} if local.get("momentum") else {}), **(local.get("options") or {})}
    return ", ".join([f"{local['optimizer']} {rate}", *(f"{name} {value}" for name, value in more.items())])


def _cells(losses: Losses) -> list[str]:
    best = min(losses.values())
    shown = ("failed" if math.isinf(loss) else EVAL_LOSS.show(loss) for loss in losses.values())
    return [f"**{text}**" if loss == best else text for text, loss in zip(shown, losses.values(), strict=True)]
