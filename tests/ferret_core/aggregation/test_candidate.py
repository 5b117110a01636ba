"""Culprits are found by leaving one out at a time; here a model breaks by the numbers that participants stand for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from ferret_core.aggregation.candidate import MAX_TRIALS, Candidate, find_culprits, reject_culprits
from ferret_core.aggregation.selection import ContributionSummary, Selection
from ferret_core.algorithms.configs.norms import Norms
from tests.refusals import refused


def selection(harm: Mapping[str, float]) -> Selection:
    """One contribution for each name, the longer the more harm it does."""
    norms = {name: Norms.of([value], [1]) for name, value in harm.items()}
    return Selection(1, [], tuple(ContributionSummary(name, "", 1, norms[name]) for name in harm))


class Builder:
    """A candidate's loss is the harm of those that it is made of; beyond 1 it is broken."""

    def __init__(self, harm: Mapping[str, float]) -> None:
        self._harm = harm
        self.built = 0

    def build(self, selection: Selection) -> Candidate:
        return self.build_without(selection, ())

    def build_without(self, selection: Selection, excluded: Collection[str]) -> Candidate:
        self.built += 1
        loss = sum(self._harm[each.participant] for each in selection.accepted if each.participant not in excluded)
        return Candidate(b"update", loss, "it is too high" if loss > 1 else None)

    def roll_back(self) -> None:
        pass


@pytest.mark.parametrize(
    ("harm", "culprits"),
    [
        ({"a": 0.1, "b": 5.0, "c": 0.1}, ["b"]),
        ({"a": 0.1, "b": 5.0, "c": 0.1, "d": 9.0, "e": 0.1}, ["d", "b"]),
        ({"a": 0.7, "b": 0.7}, []),
        ({"a": 2.0, "b": 2.0, "c": 2.0}, []),
    ],
    ids=["one", "the worst first", "two cannot be told apart", "nobody's absence helps"],
)
def test_culprits_are_those_without_whom_the_round_is_sound(harm: dict[str, float], culprits: list[str]) -> None:
    builder: Any = Builder(harm)
    assert find_culprits(builder, selection(harm)) == culprits


def test_the_search_ends() -> None:
    harm = {f"client-{number:03}": 2.0 for number in range(40)}
    builder: Any = Builder(harm)
    assert (find_culprits(builder, selection(harm)), builder.built) == ([], MAX_TRIALS)


def test_a_sound_round_is_left_as_it_is() -> None:
    harm = {"a": 0.1, "b": 0.1}
    builder: Any = Builder(harm)
    given = selection(harm), builder.build(selection(harm))
    assert reject_culprits(builder, *given) == given


def test_who_is_rejected_is_told_what_the_round_was_like_with_it() -> None:
    harm = {"a": 0.1, "b": 5.0, "c": 0.1}
    builder: Any = Builder(harm)
    kept, candidate = reject_culprits(builder, selection(harm), builder.build(selection(harm)))
    assert kept.rejected == {"b": "the round breaks the model with it, and not without it: it is too high"}
    assert candidate.broken is None


def test_culprits_who_are_more_than_half_end_the_round() -> None:
    harm = {"a": 0.1, "b": 5.0, "c": 5.0, "d": 5.0, "e": 0.1}
    builder: Any = Builder(harm)
    with refused("round.diverged", "only 2 of 5 contributions"):
        reject_culprits(builder, selection(harm), builder.build(selection(harm)))
