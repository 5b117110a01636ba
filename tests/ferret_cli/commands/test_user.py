"""``ferret user …`` and ``ferret whoami`` at a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.api.people import PASSWORD
from tests.ferret_cli.commands.conftest import Cli


def test_a_user_is_made_changed_shut_out_and_let_in_again(live: Any, cli: Cli, password_file: str) -> None:
    made = cli("user", "create", "Ada", "--role", "researcher", "--password-file", password_file, "--json")
    assert made.returncode == 0
    assert json.loads(made.stdout)["name"] == "ada"
    sign_in = {"name": "ada", "password": PASSWORD}
    assert live.admin.post("/api/v1/session", json=sign_in).status_code == 204
    assert cli("user", "create", "ada", "--no-password").returncode == 5
    assert "has the role viewer now" in cli("user", "edit", "ada", "--role", "viewer").stderr
    assert "is disabled" in cli("user", "disable", "ada").stderr
    assert live.admin.post("/api/v1/session", json=sign_in).status_code == 401
    (listed,) = [user for user in json.loads(cli("user", "list", "--json").stdout)["items"] if user["name"] == "ada"]
    assert (listed["role"], listed["enabled"]) == ("viewer", False)
    table = cli("user", "list").stdout
    assert "disabled" in table
    assert "signs in at" in table
    assert "is enabled" in cli("user", "enable", "ada").stderr
    Path(password_file).write_text("another fine password\n")
    assert "another password" in cli("user", "set-password", "ada", "--password-file", password_file).stderr
    assert live.admin.post("/api/v1/session", json=sign_in).status_code == 401
    assert live.admin.post("/api/v1/session", json={**sign_in, "password": "another fine password"}).status_code == 204


def test_passwords_have_no_place_on_the_command_line(cli: Cli, tmp_path: Path) -> None:
    assert "no such option" in cli("user", "create", "ada", "--password", PASSWORD).stderr.lower()
    unasked = cli("user", "create", "ada")
    assert unasked.returncode == 2
    assert "--password-file" in unasked.stderr
    missing = cli("user", "create", "ada", "--password-file", str(tmp_path / "none"))
    assert missing.returncode == 2
    assert "cannot be read" in missing.stderr
    (tmp_path / "short").write_text("elevenchars\n")
    short = cli("user", "create", "ada", "--password-file", str(tmp_path / "short"))
    assert "at least 12 characters" in short.stderr
    assert "elevenchars" not in short.stderr


def test_everybody_is_told_who_it_is_and_changes_the_own_password(
    live: Any, cli: Cli, password_file: str, tmp_path: Path
) -> None:
    cli("user", "create", "ada", "--password-file", password_file)
    token = cli("token", "create", "laptop", "--user", "ada", "--write").stdout.strip()
    assert cli("whoami", token=token).stdout == f"ada, viewer, at {live.url}; the token's scopes: read and write\n"
    assert json.loads(cli("whoami", "--json").stdout)["role"] == "admin"
    (tmp_path / "next").write_text("another fine password\n")
    files = ("--current-file", password_file, "--password-file", str(tmp_path / "next"))
    assert "ada has another password" in cli("user", "set-password", *files, token=token).stderr
    refused = cli("user", "set-password", *files, token=token)
    assert refused.returncode == 4
    assert "not this account's password" in refused.stderr
    assert cli("user", "set-password", "ada", *files).returncode == 2, "the current one is asked for one's own alone"
    assert "--current-file" in cli("user", "set-password", token=token).stderr
    sign_in = {"name": "ada", "password": "another fine password"}
    assert live.admin.post("/api/v1/session", json=sign_in).status_code == 204


def test_nobody_of_that_name(cli: Cli) -> None:
    unknown = cli("user", "disable", "eve")
    assert unknown.returncode == 3
    assert "ferret user list" in unknown.stderr
