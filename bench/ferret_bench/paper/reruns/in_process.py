"""Runs cells one after the other in this process, with no server: the same figures, bit for bit on CPU."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from ferret_bench.measure.machine import machine
from ferret_bench.paper.reruns.grid import Cell
from ferret_bench.paper.reruns.record import Record, RoundRecord
from ferret_cli.failure import of_exception
from ferret_cli.output import say
from ferret_cli.progress import HEADER
from ferret_cli.simulation import line
from ferret_core.protocol.errors import FerretError
from ferret_core.simulate import RoundResult, SimulationResult, simulate

VIA = "simulate"


def simulated(cells: Iterable[Cell]) -> Iterator[tuple[Cell, Record]]:
    """Each cell with how it ended; a failure is recorded and the next one runs."""
    here = machine()
    for cell in cells:
        started = time.monotonic()
        say(f"{cell.title}\n{HEADER}")
        ended = _run(cell)
        yield cell, cell.record(VIA, time.monotonic() - started, here, **ended)


def _run(cell: Cell) -> dict[str, object]:
    done: list[RoundResult] = []

    def tell(result: RoundResult) -> None:
        done.append(result)
        say(str(line(result, cell.spec.rounds)))

    try:
        result: SimulationResult = simulate(cell.spec, on_round=tell)
    except Exception as error:
        raised = error if isinstance(error, FerretError) else of_exception(error)
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
