"""Runs cells one after the other in this process, with no server: the same figures, bit for bit on CPU."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from ferret_bench._machine import machine
from ferret_bench.reproduce.reruns.grid import Cell
from ferret_bench.reproduce.reruns.records import Record, RoundRecord
from ferret_cli.output import say, unforeseen
from ferret_cli.round_progress import HEADER
from ferret_cli.simulation_output import line
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from ferret_core.simulate import RoundResult, SimulationResult, measured, simulate

VIA = "simulate"


class _Kept:
    """A cache between runs: the last run's data, and the base models' metrics.

    Reading and tokenising the data takes as long as a round, and the metrics longer if many examples are held out.
    """

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._data: FederatedData | None = None
        self._base: dict[tuple[object, ...], dict[str, float]] = {}

    def load(self, spec: ExperimentSpec, tokenizer: Any, context: int) -> FederatedData:
        evaluation = spec.evaluation
        key = (
            *(spec.model.source, spec.prompt, spec.dataset, spec.partition, spec.participants, spec.seed, context),
            *(evaluation.split, evaluation.validation_share),
        )
        if self._data is None or key != self._key:
            self._key, self._data = key, FederatedData(spec, tokenizer, context)
        return self._data

    def measure(self, replica: Replica, data: FederatedData) -> dict[str, float]:
        if replica.round:
            return measured(replica, data)
        spec = replica.spec
        settings = (part.model_dump_json() for part in (spec.model, spec.prompt, spec.evaluation))
        key = (replica.digest, *settings, tuple(data.held_out))
        if key not in self._base:
            self._base[key] = measured(replica, data)
        return dict(self._base[key])


def simulated(cells: Iterable[Cell]) -> Iterator[tuple[Cell, Record]]:
    """Yields each cell with its result. A failure is recorded and the next one runs."""
    here, kept = machine(), _Kept()
    for cell in cells:
        started = time.monotonic()
        say(f"{cell.title}\n{HEADER}")
        ended = _run(cell, kept)
        yield cell, cell.record(VIA, time.monotonic() - started, here, **ended)


def _run(cell: Cell, kept: _Kept) -> dict[str, object]:
    done: list[RoundResult] = []

    def tell(result: RoundResult) -> None:
        done.append(result)
        say(str(line(result, cell.spec.rounds)))

    try:
        result: SimulationResult = simulate(cell.spec, on_round=tell, load=kept.load, measure=kept.measure)
    except Exception as error:
        raised = error if isinstance(error, FerretError) else unforeseen(error)
        return {"rounds": [_round(ended) for ended in done], "error": raised.to_json()}
    return {"rounds": [_round(ended) for ended in done], "digest": result.digest}


def _round(done: RoundResult) -> RoundRecord:
    return RoundRecord(
        number=done.number,
        metrics=done.metrics | done.cost,
        bytes_up=done.bytes_up,
        bytes_down=done.bytes_down,
        participants=len(done.accepted) + len(done.rejected),
        accepted=len(done.accepted),
    )
