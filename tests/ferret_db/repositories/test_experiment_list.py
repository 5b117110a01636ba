"""The list of experiments: filters, orders, and pages that stay right while rows change."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from ferret_core.protocol.roles import Role
from ferret_core.protocol.states import ExperimentState
from ferret_db.database import Database
from ferret_db.repositories import experiment_list, experiments, metrics, projects, seed_groups, users
from ferret_db.repositories.experiment_list import ExperimentFilter
from ferret_db.row_visibility import Reach
from ferret_db.tables import FIRST_PROJECT, Experiment
from tests.ferret_db.conftest import pages
from tests.refusals import refused

pytestmark = pytest.mark.about_database


def names(database: Database, **wanted: Any) -> list[str]:
    with database.read() as s:
        return [row.name for row in experiment_list.list_page(s, ExperimentFilter(**wanted), 10).items]


def test_filters(database: Database, lab: Any) -> None:
    lab.submit(name="Clinic A")
    lab.submit(name="clinic b", algorithm={"name": "fedavg"})
    lab.start(name="100% bank", dataset={"name": "jsonl"})
    assert names(database) == ["100% bank", "clinic b", "Clinic A"]
    assert names(database, name="CLINIC") == ["clinic b", "Clinic A"]
    assert names(database, name="0%") == ["100% bank"]
    assert names(database, name="_") == []
    assert names(database, algorithm="fedavg") == ["clinic b"]
    assert names(database, dataset="jsonl") == ["100% bank"]
    assert names(database, states=[ExperimentState.RUNNING, ExperimentState.FAILED]) == ["100% bank"]
    assert names(database, states=[ExperimentState.QUEUED], name="a") == ["Clinic A"]


def test_bounds_of_numbers(database: Database, lab: Any) -> None:
    for name, loss, seed in (("good", 1.5, 3), ("bad", 2.5, 4)):
        experiment = lab.start(name=name, seed=seed)
        with database.begin() as s:
            metrics.add(s, experiment.id, 0, {"eval_loss": 9.0})
            metrics.add(s, experiment.id, 1, {"eval_loss": loss})
    lab.submit(name="unmeasured", seed=5)
    assert names(database, bounds=["eval_loss<2"]) == ["good"]
    assert names(database, bounds=["eval_loss>=2.5"]) == ["bad"]
    assert names(database, bounds=["eval_loss<1e1", "seed<=3"]) == ["good"]
    assert names(database, bounds=["seed>3"]) == ["unmeasured", "bad"]
    with database.read() as s:
        groups = seed_groups.list_page(s, ExperimentFilter(bounds=["best_eval_loss<2"]), 10, None, "-created").items
    assert [group.newest.name for group in groups] == ["good"]


@pytest.mark.parametrize("bound", ["name<2", "state<2", "eval_los<2"])
def test_a_bound_is_of_a_column_of_numbers(database: Database, bound: str) -> None:
    with refused("request.invalid", field="where"):
        names(database, bounds=[bound])


def test_tags_are_found_in_upper_and_lower_case_and_each_is_wanted(database: Database, lab: Any) -> None:
    for name, given in {"a": ["Hearts", "\u03a3\u03c4\u03cc\u03c7\u03bf\u03c2"], "b": ["hearts"], "c": []}.items():
        experiment = lab.submit(name=name)
        with database.begin() as s:
            experiments.replace_tags(s, experiment.id, given)
    assert names(database, tags=["HEARTS"]) == ["b", "a"]
    assert names(database, tags=["hearts", "\u03c3\u03c4\u03cc\u03c7\u03bf\u03c3"]) == ["a"]
    assert names(database, tags=["heart"]) == []


def test_spans_of_time_that_touch_share_nothing(database: Database, lab: Any) -> None:
    first, second = lab.submit(name="a"), lab.submit(name="b")
    with database.begin() as s:
        s.execute(
            update(Experiment)
            .where(Experiment.id == second.id)
            .values(created_at=first.created_at + timedelta(hours=1))
        )
    between = lab.get(second).created_at
    assert names(database, created_after=between) == ["b"]
    assert names(database, created_before=between) == ["a"]


def walk(database: Database, sort: str, limit: int = 2) -> list[str]:
    found = pages(database, lambda s, cursor: experiment_list.list_page(s, ExperimentFilter(), limit, cursor, sort))
    return [row.name for items in found for row in items]


@pytest.fixture
def five(database: Database, lab: Any) -> dict[str, Experiment]:
    """Of which two have been measured, and one has ended."""
    rows = {name: lab.submit(name=name, rounds=rounds) for name, rounds in zip("bDaec", (5, 3, 1, 4, 2), strict=True)}
    with database.begin() as s:
        metrics.add(s, rows["b"].id, 1, {"eval_loss": 2.5})
        metrics.add(s, rows["b"].id, 2, {"eval_loss": 0.1})
        metrics.add(s, rows["e"].id, 1, {"eval_loss": 0.3})
        experiments.change(s, rows["a"].id, finished_at=rows["a"].created_at)
        s.execute(update(Experiment).where(Experiment.id == rows["c"].id).values(state=ExperimentState.FAILED))
    return rows


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("name", "abcDe"),
        ("-rounds", "beDca"),
        ("created", "bDaec"),
        ("-eval_loss", "eb"),
        ("eval_loss", "be"),
        ("finished", "a"),
        ("-finished", "a"),
        ("-state", "c"),
    ],
)
def test_each_order_is_walked_without_gaps(
    database: Database, five: dict[str, Experiment], sort: str, first: str
) -> None:
    found = walk(database, sort)
    assert "".join(found[: len(first)]) == first
    assert sorted(found) == sorted(five)
    assert walk(database, sort, limit=1) == walk(database, sort, limit=10) == found


def test_every_column_can_be_sorted_by(database: Database, five: dict[str, Experiment]) -> None:
    for sort in experiment_list.sorts():
        assert sorted(walk(database, sort)) == sorted(five), sort


def test_what_changes_between_two_pages_moves_no_other_row(database: Database, five: dict[str, Experiment]) -> None:
    with database.read() as s:
        page = experiment_list.list_page(s, ExperimentFilter(), 2, None, "-rounds")
    with database.begin() as s:  # the last of the page goes to the end, the one before it goes away
        experiments.change(s, five["e"].id, rounds=0)
        experiments.delete(s, five["b"].id)
    with database.read() as s:
        rest = experiment_list.list_page(s, ExperimentFilter(), 9, page.next_cursor, "-rounds")
    assert [row.name for row in rest.items] == ["D", "c", "a", "e"]


def test_a_member_sorts_and_finds_what_it_sees(database: Database, lab: Any, five: dict[str, Experiment]) -> None:
    with database.begin() as s:
        user_id = users.create(s, "ada", Role.RESEARCHER, None).id
        experiments.replace_tags(s, five["b"].id, ["hearts"])
    member = database.within(Reach.of_member(user_id))
    assert walk(member, "-eval_loss") == []
    with database.begin() as s:
        projects.add_member(s, FIRST_PROJECT, user_id)
    assert walk(member, "-eval_loss")[:2] == ["e", "b"]
    assert len(walk(member, "-bytes_up")) == 5
    assert names(member, tags=["hearts"]) == ["b"]


def test_an_unknown_column_is_told_with_the_nearest(database: Database) -> None:
    with refused("request.invalid", "eval_loss") as caught, database.read() as s:
        experiment_list.list_page(s, ExperimentFilter(), 2, None, "-eval_los")
    assert caught.value.errors[0].field == "sort"


def test_a_cursor_of_another_order_is_refused(database: Database, five: dict[str, Experiment]) -> None:
    with database.read() as s:
        cursor = experiment_list.list_page(s, ExperimentFilter(), 2, None, "name").next_cursor
    with refused("request.invalid", "sorted by -name") as caught, database.read() as s:
        experiment_list.list_page(s, ExperimentFilter(), 2, cursor, "-name")
    assert caught.value.errors[0].field == "cursor"


def test_tags_go_with_the_experiment(database: Database, lab: Any) -> None:
    experiment = lab.submit()
    with database.begin() as s:
        experiments.replace_tags(s, experiment.id, ["b", "A"])
        experiments.replace_tags(s, experiment.id, ["A", "c"])
        assert experiments.tags_of(s, [experiment.id, "exp_2"]) == {experiment.id: ["A", "c"], "exp_2": []}
        experiments.delete(s, experiment.id)
        assert experiments.tags_of(s, [experiment.id]) == {experiment.id: []}
