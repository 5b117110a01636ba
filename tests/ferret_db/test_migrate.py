"""Migrations: the migrated schema is the tables' schema, forth and back, from several processes at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from ferret_db import migrate, schema_version
from ferret_db.database import new_engine
from ferret_db.tables import Base
from tests.refusals import refused

pytestmark = pytest.mark.about_database


def differences(url: str) -> list[object]:
    engine = new_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        found = compare_metadata(context, Base.metadata)
    engine.dispose()
    return found


def table_names(url: str) -> set[str]:
    engine = new_engine(url)
    with engine.connect() as connection:
        found = set(inspect(connection).get_table_names())
    engine.dispose()
    return found


@pytest.mark.heavy
def test_migrated_schema_is_the_tables_schema(empty_url: str) -> None:
    assert len(differences(empty_url)) > 10
    migrate.upgrade(empty_url)
    assert differences(empty_url) == []


def test_upgrade_makes_the_folder_of_a_new_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/home/ferret.db"
    migrate.upgrade(url)
    assert schema_version.current(url) == schema_version.HEAD


def test_looking_up_a_revision_creates_no_file(tmp_path: Path) -> None:
    assert schema_version.current(f"sqlite:///{tmp_path}/ferret.db") is None
    assert not [*tmp_path.iterdir()]


def test_constraints_carry_the_names_of_the_convention(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    engine = new_engine(empty_url)
    inspector = inspect(engine)
    for table in Base.metadata.sorted_tables:
        named = {str(constraint.name) for constraint in table.constraints}
        assert inspector.get_pk_constraint(table.name)["name"] in named
        assert {key["name"] for key in inspector.get_foreign_keys(table.name)} <= named
        assert {unique["name"] for unique in inspector.get_unique_constraints(table.name)} <= named
    engine.dispose()


@pytest.mark.heavy
def test_upgrade_downgrade_upgrade(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    with migrate.migrating(empty_url) as config:
        command.downgrade(config, "base")
    assert table_names(empty_url) == {"alembic_version"}
    assert schema_version.current(empty_url) is None
    migrate.upgrade(empty_url)
    assert differences(empty_url) == []


def test_processes_that_upgrade_at_once_take_turns(empty_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate.upgrade, [empty_url] * 4))
    assert schema_version.current(empty_url) == schema_version.HEAD


def test_a_failing_migration_leaves_nothing_behind(empty_url: str) -> None:
    def interrupted() -> None:
        with migrate.migrating(empty_url) as config:
            command.upgrade(config, "head")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert table_names(empty_url) == set()


def test_check_names_both_revisions(empty_url: str) -> None:
    with refused("server.not_ready", "revision none", schema_version.HEAD):
        schema_version.check(empty_url)
    migrate.upgrade(empty_url)
    schema_version.check(empty_url)


def test_check_says_that_a_database_cannot_be_reached(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}", "postgresql://ferret:secret@127.0.0.1:1/ferret"):
        with refused("server.not_ready", "cannot be reached") as caught:
            schema_version.check(url)
        assert "secret" not in caught.value.detail
