"""``ferret project …`` at a server."""

from __future__ import annotations

import json

import pytest

from tests.ferret_cli.commands.conftest import Cli


@pytest.mark.slow
def test_a_project_is_made_joined_restricted_and_deleted(cli: Cli, password_file: str) -> None:
    told = cli("user", "create", "ada", "--role", "researcher", "--password-file", password_file).stderr
    assert "sees no experiment yet: ferret project add-member default ada" in told
    token = cli("token", "create", "laptop", "--user", "ada").stdout.strip()
    assert cli("project", "create", "hearts", "--description", "All about hearts").returncode == 0
    assert cli("project", "create", "hearts").returncode == 5
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
    assert "no longer a member" in cli("project", "remove-member", "hearts", "ada").stderr
    assert cli("project", "show", "hearts", token=token).returncode == 3
    assert cli("user", "create", "zoe", "--project", "none", "--password-file", password_file).returncode == 3
    made = cli("user", "create", "zoe", "--project", "hearts", "--password-file", password_file)
    assert "no experiment" not in made.stderr, "zoe was not made before"
    assert "zoe, viewer" in cli("project", "show", "hearts").stdout
    assert cli("project", "delete", "default").returncode == 5
    assert "is deleted" in cli("project", "delete", "hearts").stderr
