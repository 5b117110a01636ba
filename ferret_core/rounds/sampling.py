"""Who takes part in a round, with which seeds, and when it may close: pure functions of the specification."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.metrics import metric
from ferret_core.protocol.spec import ExperimentSpec, RoundTask

EDGE_QUORUM = 0.5


def client_names(count: int) -> list[str]:
    """Names of the simulated clients, in the order of the partition's shards."""
    width = max(3, len(str(count)))
    return [f"client-{number:0{width}}" for number in range(1, count + 1)]


def sample_size(spec: ExperimentSpec, population: int) -> int:
    """How many of the population a round needs: ⌈fraction · population⌉."""
    return math.ceil(spec.participants.fraction * population)


def asked_size(spec: ExperimentSpec, population: int) -> int:
    """How many of the population are asked: those needed and the over-selected."""
    needed = sample_size(spec, population)
    return min(population, needed + _ceil_of(spec.round.over_selection, needed))


def sample(
    spec: ExperimentSpec,
    round_number: int,
    names: Iterable[str],
    attempt: int = 1,
    sitting_out: Collection[str] = frozenset(),
) -> list[str]:
    """The names asked in an attempt at a round, in the order drawn: uniformly, the same on every machine.

    n = :func:`sample_size` of them, and with over-selection ⌈n · (1 + x)⌉ or as many as there are: the first n are the
    same. Each name gets a derived random rank, so a newcomer never changes the order among the others.

    ``sitting_out`` are those who failed or were refused in the attempt before: they are asked only where without them
    the quorum could not be reached.
    """
    again = _again(attempt)
    ranked = sorted(names, key=lambda name: derive_seed(spec.seed, "sample", round_number, name, *again))
    rested = [name for name in ranked if name not in sitting_out]
    asked = rested[: asked_size(spec, len(ranked))]
    short = max(0, quorum(spec, sample_size(spec, len(ranked))) - len(asked))
    return asked + [name for name in ranked if name in sitting_out][:short]


def round_tasks(
    spec: ExperimentSpec,
    experiment: str,
    round_number: int,
    participants: Sequence[str],
    base_digest: str,
    population: int | None = None,
    attempt: int = 1,
) -> list[RoundTask]:
    """The tasks of all of a round's participants, in their order; every seed is fresh for each attempt at each round.

    ``population`` is the number of those they were sampled from; as the specification has it, if not given.
    """
    population = population or spec.participants.simulated + spec.participants.edge
    again = _again(attempt)
    round_seed = derive_seed(spec.seed, "basis", round_number, *again)
    return [
        RoundTask(
            experiment=experiment,
            round=round_number,
            rounds=spec.rounds,
            participant=participant,
            base_digest=base_digest,
            data_seed=derive_seed(spec.seed, "data", round_number, participant, *again),
            seed=derive_seed(spec.seed, "basis", round_number, participant, *again),
            round_seed=round_seed,
            population=population,
        )
        for participant in participants
    ]


def quorum_share(spec: ExperimentSpec) -> float:
    """The quorum; where none is given, all simulated clients, and half of them where real participants take part."""
    if spec.round.quorum is not None:
        return spec.round.quorum
    return EDGE_QUORUM if spec.participants.edge else 1.0


def quorum(spec: ExperimentSpec, needed: int) -> int:
    """How many of the needed participants must have been accepted for the round to count; at least one."""
    return max(1, _ceil_of(quorum_share(spec), needed))


def evaluation_due(spec: ExperimentSpec, round_number: int) -> bool:
    """Whether this round is evaluated: the base model, every n-th round, and the last."""
    return round_number % spec.evaluation.every == 0 or round_number == spec.rounds


def checkpoint_due(spec: ExperimentSpec, round_number: int) -> bool:
    """Whether this round's model is written out: the base model, every n-th round, and the last, which may be any
    evaluated one where the experiment may stop early."""
    may_be_last = spec.stopping.patience is not None and evaluation_due(spec, round_number)
    return may_be_last or round_number % spec.checkpoint.every == 0 or round_number == spec.rounds


def quorum_missed(round_number: int, attempt: int, accepted: int, needed: int, reason: str | None) -> FerretError:
    """The error of an attempt that too few participants reached; ``reason`` is that of the first rejection, if any."""
    why = (
        f"; the first rejection was: {reason}"
        if reason
        else "; lower round.quorum or set a longer round.deadline_seconds"
    )
    return FerretError(
        "quorum.missed",
        f"round {round_number}, attempt {attempt}: {accepted} participants were accepted, {needed} are needed{why}",
    )


def absurd_metrics(by_participant: Mapping[str, Mapping[str, float]]) -> dict[str, list[str]]:
    """By participant, the figures of its own that nobody can have measured."""
    found = {
        participant: [name for name, value in sorted(metrics.items()) if not _measurable(name, value)]
        for participant, metrics in by_participant.items()
    }
    return {participant: names for participant, names in found.items() if names}


def mean_metrics(by_participant: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The participants' own metrics, averaged with equal weights over those that report them, in name order.

    Without those of :func:`absurd_metrics`.
    """
    ordered = [
        {name: value for name, value in by_participant[participant].items() if _measurable(name, value)}
        for participant in sorted(by_participant)
    ]
    names = sorted({name for metrics in ordered for name in metrics})
    reported = {name: [metrics[name] for metrics in ordered if name in metrics] for name in names}
    return {name: sum(values) / len(values) for name, values in reported.items()}


def _measurable(name: str, value: float) -> bool:
    entry = metric(name)
    return entry is None or entry.holds(value)


def _again(attempt: int) -> tuple[int, ...]:
    """What distinguishes a later attempt's seeds; the first one's are the round's own."""
    return () if attempt == 1 else (attempt,)


def _ceil_of(share: float, count: int) -> int:
    """⌈share · count⌉, exact: 0.1 · 30 in floats is above 3."""
    return math.ceil(Fraction(str(share)) * count)
