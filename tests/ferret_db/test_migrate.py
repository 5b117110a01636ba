"""Migrations: the migrated schema is the tables' schema, forth and back, from several processes at once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, select, text
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_db import migrate
from ferret_db.database import new_engine
from ferret_db.repositories.experiments import seed_group
from ferret_db.tables import Base, Experiment
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
    assert migrate.current(url) == migrate.head()


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
    assert migrate.current(empty_url) is None
    migrate.upgrade(empty_url)
    assert differences(empty_url) == []


def test_an_experiment_from_before_keeps_what_it_tunes(empty_url: str) -> None:
    """Sizes became shapes: a tensor that was known by its size alone is a vector."""
    with migrate.migrating(empty_url) as config:
        command.upgrade(config, "0001")
    tensors = {"known": {"a": 4, "b": 2}, "queued": None}
    engine = new_engine(empty_url)
    for name, sizes in tensors.items():
        row = {
            **dict.fromkeys(("id", "name", "algorithm", "dataset"), name),
            **dict.fromkeys(("version", "rounds", "round", "participants", "event_seq"), 0),
            "state": "running",
            "spec": "{}",
            "sizes": json.dumps(sizes) if sizes else None,
            "created_at": "2026-01-01 00:00:00.000000",
        }
        with engine.begin() as connection:
            names = ", ".join(row)
            values = ", ".join(f":{column}" for column in row)
            connection.execute(text(f"INSERT INTO experiments ({names}) VALUES ({values})"), row)
    migrate.upgrade(empty_url)
    with Session(engine) as s:
        assert {row.id: row.shapes for row in s.scalars(select(Experiment))} == {
            "known": {"a": [4], "b": [2]},
            "queued": None,
        }
    with migrate.migrating(empty_url) as config:
        command.downgrade(config, "0001")
    with engine.connect() as connection:
        sizes = connection.execute(text("SELECT sizes FROM experiments WHERE id = 'known'")).scalar_one()
    assert (json.loads(sizes) if isinstance(sizes, str) else sizes) == tensors["known"]
    engine.dispose()


def test_upgrading_again_changes_nothing(url: str) -> None:
    migrate.upgrade(url)
    assert migrate.current(url) == migrate.head()


def test_processes_that_upgrade_at_once_take_turns(empty_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate.upgrade, [empty_url] * 4))
    assert migrate.current(empty_url) == migrate.head()


def test_a_failing_migration_leaves_nothing_behind(empty_url: str) -> None:
    def interrupted() -> None:
        with migrate.migrating(empty_url) as config:
            command.upgrade(config, "head")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert table_names(empty_url) == set()


def test_check_names_both_revisions(empty_url: str) -> None:
    with pytest.raises(FerretError) as caught:
        migrate.check(empty_url)
    assert caught.value.code == "server.not_ready"
    assert "revision none" in caught.value.detail
    assert migrate.head() in caught.value.detail
    migrate.upgrade(empty_url)
    migrate.check(empty_url)


def test_check_says_that_a_database_cannot_be_reached(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}/missing/ferret.db", "postgresql://ferret:secret@127.0.0.1:1/ferret"):
        with refused("server.not_ready", "cannot be reached") as caught:
            migrate.check(url)
        assert "secret" not in caught.value.detail


def test_experiments_from_before_are_grouped(empty_url: str) -> None:
    """Those that differ in name and seed only come into one group, which is also that of new ones."""
    with migrate.migrating(empty_url) as config:
        command.upgrade(config, "0017")
    engine = new_engine(empty_url)
    specs = {"a": {"name": "a", "seed": 1, "K": 8}, "b": {"name": "b", "seed": 2, "K": 8}, "c": {"seed": 1, "K": 9}}
    for name, spec in specs.items():
        row = {
            **dict.fromkeys(("id", "name", "algorithm", "dataset"), name),
            **dict.fromkeys(("version", "rounds", "round", "participants", "real_participants", "event_seq"), 0),
            "project": "default",
            "notes": "",
            "state": "queued",
            "spec": json.dumps(spec),
            "created_at": "2026-01-01 00:00:00.000000",
        }
        with engine.begin() as connection:
            values = ", ".join(f":{column}" for column in row)
            connection.execute(text(f"INSERT INTO experiments ({', '.join(row)}) VALUES ({values})"), row)
    migrate.upgrade(empty_url)
    with Session(engine) as s:
        groups = {row.id: row.seed_group for row in s.scalars(select(Experiment))}
    assert groups["a"] == groups["b"] == seed_group("default", {"K": 8})
    assert groups["c"] == seed_group("default", {"K": 9})
    engine.dispose()
