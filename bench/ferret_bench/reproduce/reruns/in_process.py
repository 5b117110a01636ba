"""Runs cells one after the other in this process, with no server: the same figures, bit for bit on CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ferret_bench._machine import machine
from ferret_bench.reproduce.reruns.grid import Cell
from ferret_bench.reproduce.reruns.quantity import ELSEWHERE
from ferret_bench.reproduce.reruns.records import ExampleLoss, Record, RoundRecord
from ferret_cli.output import say, unforeseen
from ferret_cli.round_progress import HEADER
from ferret_cli.simulation_output import line
from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.tokenize import longest, shard_of
from ferret_core.evaluation.evaluate import evaluate, spread, total_loss
from ferret_core.experiment.federated_data import FederatedData, deal
from ferret_core.models.load import context_of
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import EvaluationSpec, ExperimentSpec
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
        self._held_out: dict[str, Sequence[Example]] = {}

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
        return self._once(replica, data.held_out, lambda: measured(replica, data))

    def measure_elsewhere(self, replica: Replica, others: Mapping[str, ExperimentSpec]) -> dict[str, float]:
        """Returns the loss on the other datasets' held-out examples."""
        found = dict[str, float]()
        for name, spec in others.items():
            place = spec.dataset.model_dump_json()
            if place not in self._held_out:
                nobody = spec.participants.model_copy(update={"simulated": 0})
                self._held_out[place] = deal(spec.model_copy(update={"participants": nobody})).held_out
            held_out = self._held_out[place]
            losses = self._once(replica, held_out, partial(_losses, replica, held_out, spec.evaluation))
            found[ELSEWHERE + name] = losses["eval_loss"]
        return found

    def _once(
        self, replica: Replica, examples: Sequence[Example], evaluate: Callable[[], dict[str, float]]
    ) -> dict[str, float]:
        """Evaluates, the base model only once."""
        if replica.round:
            return evaluate()
        spec = replica.spec
        settings = (part.model_dump_json() for part in (spec.model, spec.prompt, spec.evaluation))
        key = (replica.digest, *settings, tuple(examples))
        if key not in self._base:
            self._base[key] = evaluate()
        return dict(self._base[key])


def _losses(replica: Replica, examples: Sequence[Example], evaluation: EvaluationSpec) -> dict[str, float]:
    """Evaluates without answers."""
    alone = evaluation.model_copy(update={"generate_examples": 0})
    return evaluate(replica.model, replica.tokenizer, examples, alone, prompt=replica.spec.prompt)


def _losses_by_example(replica: Replica, examples: Sequence[Example]) -> list[ExampleLoss]:
    """Returns the loss on each of the examples that an evaluation takes."""
    spec, model, tokenizer = replica.spec, replica.model, replica.tokenizer
    most = longest(spec.prompt, tokenizer, context_of(model))
    return [
        ExampleLoss(*total_loss(model, shard_of([example], tokenizer, most, spec.prompt.template), 1))
        for example in spread(examples, spec.evaluation.examples)
    ]


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
    by_example: list[ExampleLoss] = []

    def tell(result: RoundResult) -> None:
        done.append(result)
        say(str(line(result, cell.spec.rounds)))

    def measure(replica: Replica, data: FederatedData) -> dict[str, float]:
        if not cell.others:
            return kept.measure(replica, data)
        if replica.round == cell.spec.rounds:
            by_example[:] = _losses_by_example(replica, data.held_out)
        if replica.round in (0, cell.spec.rounds):
            return kept.measure(replica, data) | kept.measure_elsewhere(replica, cell.others)
        return _losses(replica, data.held_out, replica.spec.evaluation)

    try:
        result: SimulationResult = simulate(cell.spec, on_round=tell, load=kept.load, measure=measure)
    except Exception as error:
        raised = error if isinstance(error, FerretError) else unforeseen(error)
        return {"rounds": [_round(ended) for ended in done], "error": raised.to_json()}
    return {"rounds": [_round(ended) for ended in done], "digest": result.digest, "example_losses": by_example}


def _round(done: RoundResult) -> RoundRecord:
    return RoundRecord(
        number=done.number,
        metrics=done.metrics | done.cost,
        bytes_up=done.bytes_up,
        bytes_down=done.bytes_down,
        participants=len(done.accepted) + len(done.rejected),
        accepted=len(done.accepted),
    )
