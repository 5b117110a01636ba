"""Groups of experiments that differ in the seed only: what they come to, and pages of them."""

from __future__ import annotations

from statistics import stdev
from typing import Any

import pytest

from ferret_core.protocol.roles import Role
from ferret_core.protocol.states import ExperimentState
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.repositories import experiment_list, experiments, metrics, projects, seed_groups, users
from ferret_db.repositories.experiment_list import NEWEST_FIRST, ExperimentFilter
from ferret_db.repositories.seed_groups import Group, SeedStatistics
from ferret_db.row_visibility import Reach
from ferret_db.tables import FIRST_PROJECT
from tests.ferret_db.conftest import pages

pytestmark = pytest.mark.about_database


def listed(database: Database, sort: str = NEWEST_FIRST, **wanted: Any) -> list[Group]:
    with database.read() as s:
        return seed_groups.list_page(s, ExperimentFilter(**wanted), 50, None, sort).items


def walk(database: Database, sort: str, limit: int = 2) -> list[str]:
    found = pages(database, lambda s, cursor: seed_groups.list_page(s, ExperimentFilter(), limit, cursor, sort))
    return [group.key for items in found for group in items]


@pytest.fixture
def searched(database: Database, lab: Any) -> dict[str, str]:
    """Three seeds of two rounds, two of three, one of four, with an evaluation each; ``{name: id}``."""
    runs = {f"{rounds}.{seed}": (rounds, seed) for rounds, seeds in ((2, 3), (3, 2), (4, 1)) for seed in range(seeds)}
    ids = {name: lab.submit(name=name, rounds=rounds, seed=seed).id for name, (rounds, seed) in runs.items()}
    with database.begin() as s:
        for name, id in ids.items():
            rounds, seed = runs[name]
            metrics.add(s, id, 0, {"eval_loss": rounds - seed / 2})
            metrics.add(s, id, 1, {"eval_loss": rounds + seed, "bytes_up": 10.0})
    return ids


def test_runs_that_differ_in_seed_and_name_are_one_group(database: Database, searched: dict[str, str]) -> None:
    found = {group.newest.rounds: group for group in listed(database)}
    assert {rounds: sum(group.states.values()) for rounds, group in found.items()} == {2: 3, 3: 2, 4: 1}
    assert found[2].newest.name == "2.2"
    loss = found[2].metrics["eval_loss"]
    assert loss.last == SeedStatistics(3.0, stdev([2, 3, 4]), 3)
    assert loss.best == SeedStatistics(1.5, stdev([2, 1.5, 1]), 3)
    assert found[4].metrics["eval_loss"].last == SeedStatistics(4.0, None, 1)
    assert found[4].metrics["bytes_up"].best is None


def test_an_extended_run_changes_its_group(database: Database, lab: Any) -> None:
    first, second = lab.start(rounds=2, seed=1), lab.start(rounds=3, seed=2)
    assert len(listed(database)) == 2
    with database.begin() as s:
        lifecycle.extend(s, first.id, 1)
    (group,) = listed(database)
    assert group.states == {ExperimentState.RUNNING: 2}
    assert group.newest.id == second.id


def test_a_group_is_of_what_matches_the_filters(database: Database, searched: dict[str, str]) -> None:
    (group,) = listed(database, name="2.1")
    assert group.states == {ExperimentState.QUEUED: 1}
    assert group.metrics["eval_loss"].last == SeedStatistics(3.0, None, 1)
    assert [found.newest.name for found in listed(database, seed_group=group.key)] == ["2.2"]


def test_every_order_is_walked_without_gaps(database: Database, searched: dict[str, str]) -> None:
    for sort in experiment_list.sorts():
        found = walk(database, sort)
        assert len(set(found)) == len(found) == 3, sort
        assert walk(database, sort, limit=3) == found, sort


def test_groups_are_sorted_by_the_mean(database: Database, searched: dict[str, str], lab: Any) -> None:
    last = lab.submit(name="unmeasured", rounds=9)
    rounds = [group.newest.rounds for group in listed(database, "eval_loss")]
    assert rounds == [2, 3, 4, 9], "means 3, 3.5 and 4; without a value at the end"
    assert [group.newest.rounds for group in listed(database, "-best_eval_loss")] == [4, 3, 2, 9]
    assert listed(database)[0].newest.id == last.id


def test_what_changes_between_two_pages_moves_no_other_group(database: Database, searched: dict[str, str]) -> None:
    with database.read() as s:
        page = seed_groups.list_page(s, ExperimentFilter(), 1, None, "rounds")
    with database.begin() as s:
        for name in ("2.0", "2.1", "2.2", "3.1"):
            experiments.delete(s, searched[name])
    with database.read() as s:
        rest = seed_groups.list_page(s, ExperimentFilter(), 9, page.next_cursor, "rounds")
    assert [(group.newest.rounds, sum(group.states.values())) for group in rest.items] == [(3, 1), (4, 1)]


def test_projects_share_no_group_and_members_see_their_own(database: Database, lab: Any) -> None:
    with database.begin() as s:
        projects.create(s, "lungs")
        ids = [
            lifecycle.submit(s, lab.spec(seed=seed), project=project)[0].id
            for project, seed in ((FIRST_PROJECT, 1), ("lungs", 2), ("lungs", 3))
        ]
        metrics.add(s, ids[0], 0, {"eval_loss": 100.0})
        metrics.add(s, ids[1], 0, {"eval_loss": 1.0})
        user_id = users.create(s, "ada", Role.RESEARCHER, None).id
    assert sorted((group.newest.project, sum(group.states.values())) for group in listed(database)) == [
        (FIRST_PROJECT, 1),
        ("lungs", 2),
    ]
    member = database.within(Reach.of_member(user_id))
    assert listed(member) == []
    with database.begin() as s:
        projects.add_member(s, "lungs", user_id)
    (group,) = listed(member, "-eval_loss")
    assert (group.newest.id, group.metrics["eval_loss"].last) == (ids[2], SeedStatistics(1.0, None, 1))
