from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.rounds import sampling


def spec(fraction: float = 1.0, seed: int = 0, **others: object) -> ExperimentSpec:
    return ExperimentSpec.model_validate(
        {
            "name": "test",
            "seed": seed,
            "model": {"source": "m"},
            "dataset": {"name": "jsonl"},
            "participants": {"simulated": 20, "fraction": fraction},
            **others,
        }
    )


def test_everybody_takes_part_when_the_fraction_is_one() -> None:
    names = sampling.client_names(20)
    assert sorted(sampling.sample(spec(), 1, reversed(names))) == names


def test_a_round_needs_the_decimal_share_of_the_participants() -> None:
    names = sampling.client_names(100)
    assert len(sampling.sample(spec(0.07), 1, names)) == 7


def test_over_selection_asks_more_and_those_first_that_are_asked_without_it() -> None:
    names = sampling.client_names(20)
    drawn = sampling.sample(spec(0.5), 3, names)
    assert len(drawn) == spec(0.5).participants.sample_size(20) == 10
    for share, asked in ((0.0, 10), (0.01, 11), (0.1, 11), (0.3, 13), (1.0, 20), (10.0, 20)):
        more = sampling.sample(spec(0.5, round={"over_selection": share}), 3, names)
        assert len(more) == asked
        assert more[:10] == drawn


def test_every_attempt_at_a_round_draws_anew_and_the_first_as_ever() -> None:
    names = sampling.client_names(20)
    drawn = [sampling.sample(spec(0.5), 3, names, attempt) for attempt in (1, 2, 3)]
    assert len({tuple(sorted(names)) for names in drawn}) == 3
    # Recorded when there were no attempts: digests of finished experiments depend on it.
    assert sorted(sampling.sample(spec(0.1, seed=7), 4, names)) == ["client-002", "client-010"]
    (task,) = sampling.round_tasks(spec(seed=7), "simulation", 4, ["client-001"], "00" * 32)
    recorded = (9098347135683174786, 7557967042256971090, 16918852953573894922)
    assert (task.data_seed, task.seed, task.round_seed) == recorded


def test_a_fraction_draws_each_client_about_equally_often() -> None:
    drawn = Counter(name for r in range(1, 401) for name in sampling.sample(spec(0.25), r, sampling.client_names(20)))
    assert sum(drawn.values()) == 400 * 5
    assert all(70 <= drawn[name] <= 130 for name in sampling.client_names(20))


def test_a_newcomer_does_not_reshuffle_the_others() -> None:
    names = sampling.client_names(20)
    before = set(sampling.sample(spec(0.5), 3, names))
    after = set(sampling.sample(spec(0.5), 3, [*names, "hospital"]))
    assert len(before - after) <= 1


@given(st.floats(0.01, 1.0), st.integers(1, 500))
def test_a_quorum_is_at_least_one_and_never_more_than_all(quorum: float, assigned: int) -> None:
    assert 1 <= sampling.quorum(spec(round={"quorum": quorum}), assigned) <= assigned


def test_without_a_quorum_all_simulated_clients_must_report_and_half_of_real_participants() -> None:
    real = {"participants": {"edge": 5}}
    assert sampling.quorum(spec(), 5) == 5
    assert [sampling.quorum(spec(**real), needed) for needed in (1, 2, 5)] == [1, 1, 3]
    assert sampling.quorum(spec(**real, round={"quorum": 1.0}), 5) == 5


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ([], "quorum.missed"),
        (["memory.exhausted"] * 3, "quorum.missed"),
        (["memory.exhausted", "training.non_finite", "memory.exhausted"], "quorum.missed"),
        (["memory.exhausted", "training.non_finite", "training.non_finite"], "round.diverged"),
    ],
)
def test_a_missed_quorum_is_a_divergence_if_it_would_have_been_reached_without(codes: list[str], code: str) -> None:
    rejections = [sampling.Rejection(each, "why") for each in codes]
    assert sampling.quorum_missed(3, 1, 1, 3, rejections).code == code


def test_who_failed_sits_out_the_next_attempt_unless_the_quorum_needs_it() -> None:
    names = sampling.client_names(20)
    failed = set(sampling.sample(spec(0.5), 1, names)[:3])
    assert not failed & set(sampling.sample(spec(0.5), 1, names, 2, failed))
    most = set(names[:17])
    drawn = sampling.sample(spec(0.5, round={"quorum": 0.5}), 1, names, 2, most)
    assert (len(drawn), len(most & set(drawn))) == (5, 2), "three are left, five make the quorum"


@pytest.mark.parametrize(
    ("asked", "signed", "expected"),
    [
        ("abcde", ["abcd"], "abcde"),  # a dropout may be there again
        ("abcd", ["abcdx"], "abcdx"),  # four without the fifth would show its contribution
        ("abcde", ["abcdex"], "abc"),
        ("abcdefghi", ["abcdefghix"], "abcdefg"),  # but seven may sum without the three others
        ("abcdefg", ["abcdefghix", "abcdefg"], "abcdefg"),
        ("abcdefghi", ["abcdefghij", "abcdefgh"], "abcdefghij"),
        ("abcd", ["abcdy"], "abcd"),  # one that is gone: sites refuse, and the experiment says why
    ],
)
def test_a_sum_is_repeated_with_the_same_members_or_several_fewer(asked: str, signed: list[str], expected: str) -> None:
    secure = spec(secure={"aggregation": "masked"}, round={"quorum": 0.5})
    found = sampling.repeat(secure, [*asked], [*map(set, signed)], {*asked, "x", "j"})
    assert "".join(found) == expected


@pytest.mark.parametrize(
    ("members", "group", "sizes"),
    [
        (10, 0, [10]),
        (10, 10, [10]),
        (10, 5, [5, 5]),
        (11, 4, [4, 4, 3]),
        (5, 4, [5]),
        (7, 4, [4, 3]),
        (20, 8, [7, 7, 6]),
    ],
)
def test_groups_are_as_few_as_their_size_allows_and_none_is_too_small(
    members: int, group: int, sizes: list[int]
) -> None:
    secure, names = spec(secure={"aggregation": "masked", "group": group}), sampling.client_names(members)
    found = sampling.groups(secure, 3, names)
    assert [len(each) for each in found] == sizes
    assert sorted(name for each in found for name in each) == names
    assert all(each == sorted(each) for each in found)
    assert sampling.groups(secure, 3, names[::-1]) == found
    assert len(found) == 1 or sampling.groups(secure, 4, names) != found


def test_seeds_are_fresh_for_every_round_attempt_and_participant_but_shared_where_they_must_be() -> None:
    names, opened = sampling.client_names(4), [(1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]
    rounds = [
        sampling.round_tasks(spec(), "simulation", number, names, "00" * 32, attempt=attempt)
        for number, attempt in opened
    ]
    tasks = [task for tasks in rounds for task in tasks]
    assert len({seed for task in tasks for seed in (task.seed, task.data_seed, task.round_seed)}) == 2 * 20 + 5
    assert [len({task.round_seed for task in tasks}) for tasks in rounds] == [1] * 5


def test_seeds_follow_from_the_specification_not_from_the_experiment() -> None:
    def task(seed: int, experiment: str) -> RoundTask:
        return sampling.round_tasks(spec(seed=seed), experiment, 1, ["client-001"], "00" * 32)[0]

    first, other = task(5, "exp_000000000000000a"), task(5, "exp_000000000000000b")
    assert (first.seed, first.data_seed) == (other.seed, other.data_seed)
    assert first.seed != task(6, "exp_000000000000000a").seed


@pytest.mark.parametrize(("every", "due"), [(1, [0, 1, 2, 3, 4, 5, 6, 7]), (3, [0, 3, 6, 7])])
def test_evaluation_is_due_at_the_start_every_nth_round_and_at_the_end(every: int, due: list[int]) -> None:
    experiment = spec(rounds=7, evaluation={"every": every}, checkpoint={"every": every})
    assert [r for r in range(8) if sampling.evaluation_due(experiment, r)] == due
    assert [r for r in range(8) if sampling.checkpoint_due(experiment, r)] == due


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 9), st.sampled_from([None, 1]))
def test_the_saved_rounds_are_counted_without_a_walk(
    rounds: int, every: int, judged: int, patience: int | None
) -> None:
    stopping = {"stopping": {"patience": patience}}
    experiment = spec(rounds=rounds, evaluation={"every": judged}, checkpoint={"every": every}, **stopping)
    due = sum(sampling.checkpoint_due(experiment, number) for number in range(1, rounds + 1))
    assert sampling.checkpoint_rounds(experiment) == due


def test_a_task_says_how_many_could_have_been_sampled() -> None:
    names = sampling.client_names(2)
    assert sampling.round_tasks(spec(), "simulation", 1, names, "00" * 32)[0].population == 20
    assert sampling.round_tasks(spec(), "simulation", 1, names, "00" * 32, 9)[0].population == 9
