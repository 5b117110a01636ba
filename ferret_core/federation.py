"""Who takes part in a round, with which seeds, and when it may close: pure functions of the specification."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask


def client_names(count: int) -> list[str]:
    """Names of the simulated clients, in the order of the partition's shards."""
    width = max(3, len(str(count)))
    return [f"client-{number:0{width}}" for number in range(1, count + 1)]


def sample(spec: ExperimentSpec, round_number: int, names: Iterable[str]) -> list[str]:
    """The sorted names drawn for a round: ⌈fraction · n⌉ of them, uniformly, the same on every machine.

    Each name gets a derived random rank, so a newcomer never changes the order among the others.
    """
    ranked = sorted(names, key=lambda name: derive_seed(spec.seed, "sample", round_number, name))
    return sorted(ranked[: math.ceil(spec.participants.fraction * len(ranked))])


def round_tasks(
    spec: ExperimentSpec,
    experiment: str,
    round_number: int,
    participants: Sequence[str],
    base_digest: str,
    population: int | None = None,
) -> list[RoundTask]:
    """The tasks of a round's participants, all of them, sorted by name; every seed is fresh each round.

    ``population`` is the number of those they were sampled from; as the specification has it, if not given.
    """
    population = population or spec.participants.simulated + spec.participants.edge
    return [
        RoundTask(
            experiment=experiment,
            round=round_number,
            participant=participant,
            base_digest=base_digest,
            data_seed=derive_seed(spec.seed, "data", round_number, participant),
            seed=derive_seed(spec.seed, "basis", round_number, participant),
            round_seed=derive_seed(spec.seed, "basis", round_number),
            rank=rank,
            population=population,
        )
        for rank, participant in enumerate(participants)
    ]


def quorum_size(quorum: float, assigned: int) -> int:
    """How many of the assigned participants must have been accepted for the round to count; at least one."""
    # Exact: 0.1 * 30 in floats lies above 3.
    return max(1, math.ceil(Fraction(str(quorum)) * assigned))


def evaluation_due(spec: ExperimentSpec, round_number: int) -> bool:
    """Whether this round is evaluated: the base model, every n-th round, and the last."""
    return round_number % spec.evaluation.every == 0 or round_number == spec.rounds


def checkpoint_due(spec: ExperimentSpec, round_number: int) -> bool:
    """Whether this round's model is written out: the base model, every n-th round, and the last."""
    return round_number % spec.checkpoint.every == 0 or round_number == spec.rounds


def quorum_missed(round_number: int, accepted: int, assigned: int, reasons: Sequence[FerretError]) -> FerretError:
    """The error of a round that too few participants reached; it repeats the first rejection's reason."""
    why = f"; the first rejection was: {reasons[0].detail}" if reasons else ""
    return FerretError(
        "quorum.missed", f"round {round_number}: {accepted} of {assigned} participants were accepted{why}"
    )


def mean_metrics(by_participant: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The participants' own metrics, averaged with equal weights over those that report them, in name order."""
    ordered = [by_participant[participant] for participant in sorted(by_participant)]
    names = sorted({name for metrics in ordered for name in metrics})
    reported = {name: [metrics[name] for metrics in ordered if name in metrics] for name in names}
    return {name: sum(values) / len(values) for name, values in reported.items()}
