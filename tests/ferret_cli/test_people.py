"""``ferret user …`` and ``ferret token …`` at a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import ADMIN
from tests.api.conftest import make_settings as make_settings
from tests.api.conftest import serve as serve
from tests.api.people import PASSWORD

Cli = Callable[..., Any]


@pytest.fixture
def live(serve: Any, make_settings: Any) -> Any:
    return serve(make_settings())


@pytest.fixture
def cli(live: Any, ferret_in_process: Any) -> Cli:
    def run(*arguments: str, token: str = ADMIN) -> Any:
        return ferret_in_process(*arguments, FERRET_URL=live.url, FERRET_TOKEN=token)

    return run


@pytest.fixture
def password_file(tmp_path: Path) -> str:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return str(path)


def test_a_user_is_made_changed_shut_out_and_let_in_again(live: Any, cli: Cli, password_file: str) -> None:
    made = cli("user", "add", "Ada", "--role", "researcher", "--password-file", password_file, "--json")
    assert made.returncode == 0
    assert json.loads(made.stdout)["name"] == "ada"
    sign_in = {"name": "ada", "password": PASSWORD}
    assert live.admin.post("/api/v1/session", json=sign_in).status_code == 204
    assert cli("user", "add", "ada", "--no-password").returncode == 5
    assert "is a viewer now" in cli("user", "role", "ada", "viewer").stderr
    assert "is disabled" in cli("user", "disable", "ada").stderr
    assert live.admin.post("/api/v1/session", json=sign_in).status_code == 401
    (listed,) = [user for user in json.loads(cli("user", "list", "--json").stdout)["items"] if user["name"] == "ada"]
    assert (listed["role"], listed["enabled"]) == ("viewer", False)
    table = cli("user", "list").stdout
    assert "disabled" in table
    assert "signs in at" in table
    assert "is enabled" in cli("user", "enable", "ada").stderr
    Path(password_file).write_text("another fine password\n")
    assert "another password" in cli("user", "password", "ada", "--password-file", password_file).stderr
    assert live.admin.post("/api/v1/session", json=sign_in).status_code == 401
    assert live.admin.post("/api/v1/session", json={**sign_in, "password": "another fine password"}).status_code == 204


def test_passwords_have_no_place_on_the_command_line(cli: Cli, tmp_path: Path) -> None:
    assert "no such option" in cli("user", "add", "ada", "--password", PASSWORD).stderr.lower()
    unasked = cli("user", "add", "ada")
    assert unasked.returncode == 2
    assert "--password-file" in unasked.stderr
    missing = cli("user", "add", "ada", "--password-file", str(tmp_path / "none"))
    assert missing.returncode == 2
    assert "cannot be read" in missing.stderr
    (tmp_path / "short").write_text("elevenchars\n")
    short = cli("user", "add", "ada", "--password-file", str(tmp_path / "short"))
    assert "at least 12 characters" in short.stderr
    assert "elevenchars" not in short.stderr


def test_everybody_is_told_who_it_is_and_changes_the_own_password(
    live: Any, cli: Cli, password_file: str, tmp_path: Path
) -> None:
    cli("user", "add", "ada", "--password-file", password_file)
    token = cli("token", "create", "laptop", "--user", "ada", "--write").stdout.strip()
    assert cli("whoami", token=token).stdout == f"ada, viewer, at {live.url}; the token is good for read and write\n"
    assert json.loads(cli("whoami", "--json").stdout)["role"] == "admin"
    (tmp_path / "next").write_text("another fine password\n")
    files = ("--current-file", password_file, "--password-file", str(tmp_path / "next"))
    assert "ada has another password" in cli("user", "password", *files, token=token).stderr
    refused = cli("user", "password", *files, token=token)
    assert refused.returncode == 4
    assert "not this account's password" in refused.stderr
    assert cli("user", "password", "ada", *files).returncode == 2, "the current one is asked for one's own alone"
    assert "--current-file" in cli("user", "password", token=token).stderr
    sign_in = {"name": "ada", "password": "another fine password"}
    assert live.admin.post("/api/v1/session", json=sign_in).status_code == 204


def test_a_token_is_made_used_listed_and_revoked(cli: Cli) -> None:
    cli("user", "add", "ada", "--role", "researcher", "--no-password")
    made = cli("token", "create", "laptop", "--user", "ada", "--write")
    token = made.stdout.strip()
    assert "shown" not in token
    assert token.startswith("ferret_user_")
    assert "good for read and write until" in made.stderr
    assert "laptop" in cli("token", "list", token=token).stdout
    assert cli("user", "list", token=token).returncode == 4, "a researcher is no administrator"
    own = cli("token", "create", "ci", "--days", "0", "--json", token=token)
    (laptop,) = [
        each
        for each in json.loads(cli("token", "list", "--json", token=token).stdout)["items"]
        if each["name"] == "laptop"
    ]
    assert json.loads(own.stdout)["expires_at"] == laptop["expires_at"], "it ends with the token that made it"
    assert json.loads(cli("token", "create", "lasting", "--days", "0", "--json").stdout)["expires_at"] is None
    reader = json.loads(own.stdout)["token"]
    assert cli("experiment", "list", token=reader).returncode == 0
    assert cli("token", "create", "more", token=reader).returncode == 4, "it only reads"
    assert "ci is revoked" in cli("token", "revoke", "ci", token=token).stderr
    assert cli("experiment", "list", token=reader).returncode == 4
    assert cli("token", "revoke", "ci", token=token).returncode == 3
    assert "laptop is revoked" in cli("token", "revoke", "laptop", "--user", "ada").stderr
    assert cli("token", "list", token=token).returncode == 4


@pytest.mark.slow
def test_sessions_are_listed_and_ended(live: Any, cli: Cli, password_file: str) -> None:
    cli("user", "add", "ada", "--password-file", password_file)
    token = cli("token", "create", "laptop", "--user", "ada", "--write").stdout.strip()
    live.admin.post("/api/v1/session", json={"name": "ada", "password": PASSWORD}).raise_for_status()
    cli("dashboard", token=token)
    link, browser = json.loads(cli("session", "list", "--json", token=token).stdout)["items"]
    assert (link["link"], browser["link"], browser["address"]) == (True, False, "127.0.0.1")
    listed = cli("session", "list", "--user", "ada").stdout
    assert all(word in listed for word in ("browser", "link", "127.0.0.1", link["id"], browser["id"]))
    assert "has ended" in cli("session", "end", link["id"], token=token).stderr
    assert "has ended" in cli("session", "end", browser["id"], "--user", "ada").stderr
    assert json.loads(cli("session", "list", "--json", token=token).stdout)["items"] == []
    assert cli("session", "end", browser["id"], token=token).returncode == 3


def test_nobody_of_that_name(cli: Cli) -> None:
    unknown = cli("user", "disable", "eve")
    assert unknown.returncode == 3
    assert "ferret user list" in unknown.stderr


@pytest.mark.slow
def test_a_project_is_made_joined_restricted_and_deleted(cli: Cli, password_file: str) -> None:
    told = cli("user", "add", "ada", "--role", "researcher", "--password-file", password_file).stderr
    assert "sees no experiment yet: ferret project add-member default ada" in told
    token = cli("token", "create", "laptop", "--user", "ada").stdout.strip()
    assert cli("project", "add", "hearts", "--description", "All about hearts").returncode == 0
    assert cli("project", "add", "hearts").returncode == 5
    assert cli("project", "show", "hearts", token=token).returncode == 3
    assert "sees hearts now" in cli("project", "add-member", "hearts", "Ada").stderr
    assert [item["name"] for item in json.loads(cli("project", "list", "--json", token=token).stdout)["items"]] == [
        "hearts"
    ]
    allowed = cli("project", "allow", "hearts", "--model", "org/small@v1", "--model", "org/large", "--data", "/data")
    assert "org/small@v1, org/large; data: /data" in allowed.stderr
    assert "org/small" in cli("project", "disallow", "hearts", "--model", "org/small").stderr, "it is not there"
    assert "models: org/large; data" in cli("project", "disallow", "hearts", "--model", "org/small@v1").stderr
    shown = cli("project", "show", "hearts", token=token).stdout
    assert all(text in shown for text in ("All about hearts", "org/large", "/data", "ada, researcher"))
    assert "all that the server reads" in cli("project", "allow", "hearts", "--any-model", "--any-data").stderr
    assert cli("project", "add-member", "hearts", "nobody").returncode == 3
    assert "no member" in cli("project", "remove-member", "hearts", "ada").stderr
    assert cli("project", "show", "hearts", token=token).returncode == 3
    assert cli("user", "add", "zoe", "--project", "none", "--password-file", password_file).returncode == 3
    made = cli("user", "add", "zoe", "--project", "hearts", "--password-file", password_file)
    assert "no experiment" not in made.stderr, "zoe was not made before"
    assert "zoe, viewer" in cli("project", "show", "hearts").stdout
    assert cli("project", "delete", "default").returncode == 5
    assert "is deleted" in cli("project", "delete", "hearts").stderr
