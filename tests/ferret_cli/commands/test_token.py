"""``ferret token …`` at a server."""

from __future__ import annotations

import json

from tests.ferret_cli.commands.conftest import Cli


def test_a_token_is_made_used_listed_and_revoked(cli: Cli) -> None:
    cli("user", "create", "ada", "--role", "researcher", "--no-password")
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
