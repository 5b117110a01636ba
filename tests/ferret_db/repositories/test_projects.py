"""Projects and their members."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.roles import Role
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.repositories import projects, users
from ferret_db.tables import FIRST_PROJECT
from tests.refusals import refused


def test_made_found_changed_and_deleted(database: Database) -> None:
    with database.begin() as s:
        projects.create(s, "cardiology", description="hearts")
    with database.begin() as s:
        with refused("project.conflict", "is taken"):
            projects.create(s, "cardiology")
        assert projects.change(s, "cardiology", data=["/data/hearts"]).data == ["/data/hearts"]
        assert projects.get(s, "cardiology").description == "hearts"
        assert projects.names(s) == ["cardiology", FIRST_PROJECT]
        projects.delete(s, "cardiology")
    with database.begin() as s:
        for ask in (projects.get, projects.delete, lambda s, name: projects.change(s, name, description="")):
            with refused("project.not_found", "no such"):
                ask(s, "cardiology")


def test_a_project_with_experiments_and_the_first_one_stay(database: Database, lab: Any) -> None:
    with database.begin() as s:
        projects.create(s, "cardiology")
        lifecycle.submit(s, lab.spec(), project="cardiology")
    with database.begin() as s:
        for name in ("cardiology", FIRST_PROJECT):
            with refused("project.conflict"):
                projects.delete(s, name)
        assert projects.names(s) == ["cardiology", FIRST_PROJECT]


@pytest.mark.about_database
def test_members_by_name_and_gone_with_the_project(database: Database) -> None:
    with database.begin() as s:
        ids = [users.create(s, name, Role.VIEWER, None).id for name in ("zoe", "ada")]
        projects.create(s, "cardiology")
        for user_id in ids:
            projects.add_member(s, "cardiology", user_id)
        assert [user.name for user in projects.members(s, "cardiology")] == ["ada", "zoe"]
        projects.delete(s, "cardiology")
        assert projects.members(s, "cardiology") == []


def test_a_key_is_a_projects_own(database: Database, lab: Any) -> None:
    """Who repeats another project's key gets neither its experiment nor a word of it."""
    with database.begin() as s:
        projects.create(s, "cardiology")
        first, _ = lifecycle.submit(s, lab.spec(), idempotency_key="k")
        second, made = lifecycle.submit(s, lab.spec(), project="cardiology", idempotency_key="k")
        again, repeated = lifecycle.submit(s, lab.spec(), project="cardiology", idempotency_key="k")
    assert (first.id != second.id, made, again.id, repeated) == (True, True, second.id, False)
