"""``ferret audit …`` at a server: who did what, and whether somebody has been at the database since."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import ADMIN

Audit = Callable[..., Any]


@pytest.fixture
def live(live: Any) -> Any:
    """A server with five entries in its log."""
    for _ in range(5):
        live.admin.post("/api/v1/session", json={"token": ADMIN}).raise_for_status()
    return live


@pytest.fixture
def audit(live: Any, ferret_in_process: Any) -> Audit:
    return lambda *arguments: ferret_in_process("audit", *arguments, FERRET_URL=live.url, FERRET_TOKEN=ADMIN)


def change(live: Any, *statements: str) -> None:
    """As somebody does who has the database."""
    with closing(sqlite3.connect(Path(live.site.context.settings.home) / "ferret.db")) as database, database:
        for statement in statements:
            database.execute(statement)


def test_a_log_as_it_was_written_verifies(audit: Audit) -> None:
    kept = audit("head").stdout.strip()
    assert kept.startswith("5:")
    assert json.loads(audit("verify", "--head", kept, "--json").stdout) == {"entries": 5, "head": kept, "kept": 1}
    assert json.loads(audit("head", "--json").stdout)["number"] == 5


def test_entries_are_listed(audit: Audit) -> None:
    listed = audit("list", "--action", "session.opened", "--limit", "2")
    assert listed.returncode == 0
    assert "session.opened" in listed.stdout
    assert "address 127.0.0.1" in listed.stdout
    items = json.loads(audit("list", "--json").stdout)["items"]
    assert [entry["number"] for entry in items] == [5, 4, 3, 2, 1]
    assert json.loads(audit("list", "--actor", "nobody", "--json").stdout) == {"items": []}


def test_what_was_changed_is_found(live: Any, audit: Audit) -> None:
    change(live, "UPDATE audit SET actor = 'nobody' WHERE number = 3")
    found = audit("verify")
    assert found.returncode == 1
    assert "3: was changed" in found.stderr


def test_a_log_that_was_cut_and_its_head_with_it_shows_against_a_head_kept_elsewhere(live: Any, audit: Audit) -> None:
    kept = audit("head").stdout.strip()
    change(
        live,
        "DELETE FROM audit WHERE number > 3",
        "UPDATE audit_head SET number = 3, hash = (SELECT hash FROM audit WHERE number = 3)",
    )
    assert audit("verify").returncode == 0
    found = audit("verify", "--head", kept)
    assert found.returncode == 1
    assert "4: is missing, and all after it" in found.stderr
    assert audit("verify", "--head", "four").returncode == 2
