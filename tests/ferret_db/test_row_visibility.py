"""A session sees the experiments of a user's projects and all that belongs to them, and nothing of any other."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, event, func, select, update

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.roles import Role
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.repositories import assignments, events, experiments, projects, users
from ferret_db.row_visibility import EVERYTHING, NOTHING, Reach
from ferret_db.tables import Base, Experiment, Membership, Project, Round
from tests.refusals import refused

OF_EXPERIMENTS = sorted(
    (mapper.class_ for mapper in Base.registry.mappers if "experiment_id" in mapper.columns),
    key=lambda table: table.__name__,
)


@pytest.fixture
def user(database: Database) -> str:
    """A member of `cardiology` alone; there is `oncology` besides."""
    with database.begin() as s:
        user_id = users.create(s, "ada", Role.RESEARCHER, None).id
        for name in ("cardiology", "oncology"):
            projects.create(s, name)
        projects.add_member(s, "cardiology", user_id)
    return user_id


def submit(database: Database, lab: Any, project: str) -> Experiment:
    """One with an open round."""
    with database.begin() as s:
        experiment, _ = lifecycle.submit(s, lab.spec(), project=project)
    with database.begin() as s:
        lifecycle.start(s, experiment.id, lab.base_digest, {"a": [4]}, [lab.file(0)])
    lab.open(experiment)
    return experiment


@pytest.mark.about_database
def test_a_member_finds_its_projects_experiments_and_no_others(database: Database, lab: Any, user: str) -> None:
    ours, theirs = submit(database, lab, "cardiology"), submit(database, lab, "oncology")
    member = database.within(Reach.of_member(user))
    with member.begin() as s:
        assert [row.id for row in s.scalars(select(Experiment))] == [ours.id]
        assert experiments.get(s, ours.id).id == ours.id
        assert projects.names(s) == ["cardiology"]
        for ask in (
            lambda: experiments.get(s, theirs.id),
            lambda: experiments.lock(s, theirs.id),
            lambda: projects.get(s, "oncology"),
        ):
            with pytest.raises(FerretError, match="no such"):
                ask()
        assert events.after(s, theirs.id, 0, 100) == []
        assert s.scalar(select(func.count()).select_from(Round)) == 1
        assert experiments.count_by_state(s) == {ours.state.RUNNING: 1}


@pytest.mark.parametrize("table", OF_EXPERIMENTS, ids=[table.__name__ for table in OF_EXPERIMENTS])
def test_every_table_of_experiments_is_narrowed(database: Database, user: str, table: Any) -> None:
    """Columns, counts and joined tables as well as rows."""
    asked: list[str] = []
    with database.within(Reach.of_member(user)).read() as s:
        event.listen(s.connection(), "before_cursor_execute", lambda *told: asked.append(told[2]))
        for query in (select(table), select(table.experiment_id), select(func.count()).select_from(table)):
            s.execute(query)
        s.execute(select(Project.name).join(table, table.experiment_id == Project.name))
    assert len(asked) == 4
    assert all("memberships.user_id" in statement for statement in asked)


def test_changes_reach_no_further_either(database: Database, lab: Any, user: str) -> None:
    theirs = submit(database, lab, "oncology")
    with database.within(Reach.of_member(user)).begin() as s:
        unsynchronised = {"synchronize_session": False}
        changed = update(Experiment).values(name="taken over").returning(Experiment.id)
        assert s.scalars(changed, execution_options=unsynchronised).all() == []
        assert s.scalars(delete(Round).returning(Round.id), execution_options=unsynchronised).all() == []
        with refused("experiment.not_found", "no such"):
            lifecycle.cancel(s, theirs.id)
    assert lab.get(theirs).name == "toy"


def test_a_member_moves_its_experiments_like_anybody(database: Database, lab: Any, user: str, sent: Any) -> None:
    ours = submit(database, lab, "cardiology")
    with database.within(Reach.of_member(user)).begin() as s:
        assert lifecycle.pause(s, ours.id).state.value == "paused"
    with database.within(Reach.of_member(user)).begin() as s:
        assert lifecycle.resume(s, ours.id).state.value == "running"
    with database.read() as s:
        assert assignments.count_by_state(s)


def test_membership_counts_from_the_next_query_on(database: Database, lab: Any, user: str) -> None:
    submit(database, lab, "oncology")
    member = database.within(Reach.of_member(user))
    for change, seen in ((projects.add_member, 1), (projects.remove_member, 0)):
        with database.begin() as s:
            assert change(s, "oncology", user)
            assert not change(s, "oncology", user)
        with member.read() as s:
            assert len(s.scalars(select(Experiment)).all()) == seen


def test_nothing_is_nothing_and_everything_all(database: Database, lab: Any, user: str) -> None:
    submit(database, lab, "oncology")
    for reach, seen in ((NOTHING, 0), (EVERYTHING, 3)):
        with database.within(reach).read() as s:
            assert len(s.scalars(select(Project)).all()) == seen
            assert len(s.scalars(select(Experiment)).all()) == min(seen, 1)
            assert len(s.scalars(select(Membership)).all()) == min(seen, 1)
