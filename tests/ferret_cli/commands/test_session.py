"""``ferret session …`` at a server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.people import PASSWORD
from tests.ferret_cli.commands.conftest import Cli


@pytest.mark.slow
def test_sessions_are_listed_and_ended(live: Any, cli: Cli, password_file: str) -> None:
    cli("user", "create", "ada", "--password-file", password_file)
    token = cli("token", "create", "laptop", "--user", "ada", "--write").stdout.strip()
    live.admin.post("/api/v1/session", json={"name": "ada", "password": PASSWORD}).raise_for_status()
    cli("dashboard", token=token)
    link, browser = json.loads(cli("session", "list", "--json", token=token).stdout)["items"]
    assert (link["link"], browser["link"], browser["address"]) == (True, False, "127.0.0.1")
    listed = cli("session", "list", "--user", "ada").stdout
    assert all(word in listed for word in ("browser", "link", "127.0.0.1", link["id"], browser["id"]))
    assert "is revoked" in cli("session", "revoke", link["id"], token=token).stderr
    assert "is revoked" in cli("session", "revoke", browser["id"], "--user", "ada").stderr
    assert json.loads(cli("session", "list", "--json", token=token).stdout)["items"] == []
    assert cli("session", "revoke", browser["id"], token=token).returncode == 3
