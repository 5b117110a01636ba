"""Sampling of a round's participants, their seeds, and the quorum: pure functions of the specification."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.metrics import metric
from ferret_core.protocol.rounding import ceil_share
from ferret_core.protocol.spec import ExperimentSpec, RoundTask

EDGE_QUORUM = 0.5


class Rejection(NamedTuple):
    """A participant's error: its ``code`` in the catalog of problems, and its ``detail``."""

    code: str
    detail: str


class SignedGroup(NamedTuple):
    """A group of an undone secure sum, and the ``survivors`` that may have signed their list."""

    members: tuple[str, ...]
    survivors: set[str]


def client_names(count: int) -> list[str]:
    """Returns names of the simulated clients, in the order of the partition's shards."""
    width = max(3, len(str(count)))
    return [f"client-{number:0{width}}" for number in range(1, count + 1)]


def invited_count(spec: ExperimentSpec, population: int) -> int:
    """Returns the number of participants to invite: the needed and the over-selected ones."""
    needed = spec.participants.sample_size(population)
    return min(population, needed + ceil_share(spec.round.over_selection, needed))


def sample(
    spec: ExperimentSpec,
    round_number: int,
    names: Iterable[str],
    attempt: int = 1,
    sitting_out: Collection[str] = frozenset(),
) -> list[str]:
    """Returns the names to invite in an attempt at a round, in random order: uniform, the same on every machine.

    n = ``participants.sample_size`` names, and with over-selection ⌈n · (1 + x)⌉ or all if fewer exist; the first n are
    the same. Each name has a derived random rank, so a new name never changes the order of the others.

    ``sitting_out``: names that failed or were rejected in the previous attempt; they are invited only if the quorum,
    or the least number of a secure sum, cannot be reached without them.
    """
    again = _again(attempt)
    ranked = sorted(names, key=lambda name: derive_seed(spec.seed, "sample", round_number, name, *again))
    rested = [name for name in ranked if name not in sitting_out]
    asked = rested[: invited_count(spec, len(ranked))]
    needed = spec.participants.sample_size(len(ranked))
    fewest = max(quorum(spec, needed), spec.secure.least if spec.secure.masked else 0)
    short = max(0, fewest - len(asked))
    return asked + [name for name in ranked if name in sitting_out][:short]


def repeat(
    spec: ExperimentSpec, drawn: Sequence[str], signed: Sequence[Collection[str]], present: Collection[str]
) -> list[str]:
    """Returns the members of a secure sum after earlier attempts at the round with the ``signed`` lists of survivors.

    A site that signed a list takes part in another sum only if that has all of these survivors, or differs by at least
    ``least`` members, since the two sums would reveal the sum of the difference. The first possible choice counts:
    ``drawn``; the same without up to ``least`` at its end; the survivors that are
    ``present``, even one that dealt wrong shares.
    """
    least = spec.secure.least
    fewest = max(least, quorum(spec, len(drawn)))
    fewer = [list(drawn[: len(drawn) - left]) for left in range(1 + least) if len(drawn) - left >= fewest]
    for names in (*fewer, sorted({name for one in signed for name in one} & {*present})):
        if all({*one} <= {*names} or len({*one} ^ {*names}) >= least for one in signed):
            return names
    return list(drawn)


def groups(spec: ExperimentSpec, round_number: int, names: Collection[str]) -> list[list[str]]:
    """Divides the members of a secure sum into groups, at random, with sizes that differ by at most one.

    Names within a group are in order. A repeated round with the same members has the same groups.
    """
    ranked = sorted(names, key=lambda name: derive_seed(spec.seed, "group", round_number, name))
    count = spec.secure.groups(len(ranked))
    return [sorted(ranked[place::count]) for place in range(count)]


def sum_groups(
    spec: ExperimentSpec,
    round_number: int,
    names: Collection[str],
    attempt: int,
    sitting_out: Collection[str],
    signed: Sequence[Sequence[SignedGroup]],
) -> list[list[str]]:
    """Returns the groups of an attempt at a secure sum over a sample of ``names``; none if too few are there.

    ``signed`` has the groups of the undone attempts at the round. Once survivors may have signed their list, the groups
    stay the same, since sites refuse a sum that would reveal a few of them.
    """
    least = spec.secure.least
    if not signed:
        drawn = sample(spec, round_number, names, attempt, sitting_out)
        return groups(spec, round_number, drawn) if len(drawn) >= least else []
    past = [group.survivors for undone in signed for group in undone]
    again = list[list[str]]()
    for group in signed[-1]:
        asked = [name for name in group.members if name in names and name not in sitting_out]
        own = [survivors for survivors in past if survivors & {*group.members}]
        again.append(sorted(repeat(spec, asked, own, names)))
    return [members for members in again if len(members) >= least]


def round_tasks(
    spec: ExperimentSpec,
    experiment: str,
    round_number: int,
    participants: Sequence[str],
    base_digest: str,
    population: int | None = None,
    attempt: int = 1,
) -> list[RoundTask]:
    """Returns the tasks of all of a round's participants, in their order; every seed is new for each attempt at each
    round.

    ``population``: the number of participants they were sampled from; by default the specification's.
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
    """Returns the quorum; the default is all simulated clients, or half of the participants if real ones take part."""
    if spec.round.quorum is not None:
        return spec.round.quorum
    return EDGE_QUORUM if spec.participants.edge else 1.0


def quorum(spec: ExperimentSpec, needed: int) -> int:
    """Returns the number of accepted participants that the round needs to count; at least one."""
    return max(1, ceil_share(quorum_share(spec), needed))


def evaluation_due(spec: ExperimentSpec, round_number: int) -> bool:
    """True if this round is evaluated: the base model, every n-th round, and the last."""
    return round_number % spec.evaluation.every == 0 or round_number == spec.rounds


def checkpoint_due(spec: ExperimentSpec, round_number: int) -> bool:
    """True if this round's model is saved: the base model, every n-th round, and the last.

    With early stopping any evaluated round may be the last.
    """
    may_be_last = spec.stopping.patience is not None and evaluation_due(spec, round_number)
    return may_be_last or round_number % spec.checkpoint.every == 0 or round_number == spec.rounds


def checkpoint_rounds(spec: ExperimentSpec) -> int:
    """Returns the number of rounds that :func:`checkpoint_due` saves, without the base model."""
    periods = [spec.checkpoint.every]
    if spec.stopping.patience is not None:
        periods.append(spec.evaluation.every)
    both = math.lcm(*periods)
    due = sum(spec.rounds // period for period in periods)
    if len(periods) > 1:
        due -= spec.rounds // both
    return due + all(spec.rounds % period for period in periods)


def quorum_missed(
    round_number: int, attempt: int, accepted: int, needed: int, rejections: Sequence[Rejection]
) -> FerretError:
    """Creates the error of an attempt with too few participants; ``rejections`` are the attempt's, in order.

    It is ``round.diverged`` if the quorum would have been reached without losses that are not finite.
    """
    found = f"round {round_number}, attempt {attempt}: {accepted} participants were accepted, {needed} are needed"
    diverged = [each.detail for each in rejections if each.code == "training.non_finite"]
    if diverged and accepted + len(diverged) >= needed:
        count = f"{len(diverged)} diverged" if len(diverged) > 1 else "one diverged"
        return FerretError("round.diverged", f"{found}, and {count}: {diverged[0]}")
    if rejections:
        return FerretError("quorum.missed", f"{found}; the first rejection was: {rejections[0].detail}")
    return FerretError("quorum.missed", f"{found}; lower round.quorum or set a longer round.deadline_seconds")


def implausible_metrics(by_participant: Mapping[str, Mapping[str, float]]) -> dict[str, list[str]]:
    """Returns reported metrics outside their valid range, by participant."""
    found = {
        participant: [name for name, value in sorted(metrics.items()) if not _measurable(name, value)]
        for participant, metrics in by_participant.items()
    }
    return {participant: names for participant, names in found.items() if names}


def mean_metrics(by_participant: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Averages the participants' own metrics with equal weights over the participants that report them, in name order.

    Values of :func:`implausible_metrics` are excluded.
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
    """Returns the additional seed parts of a later attempt; empty for the first."""
    return () if attempt == 1 else (attempt,)
