"""``ferret alert …`` at a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.receiver import Receiver, is_signed
from tests.ferret_cli.commands.conftest import Cli


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"alert_networks": "127.0.0.0/8", "alert_seconds": 0.05}


@pytest.fixture
def failing() -> Iterator[Receiver]:
    """Takes the first message, and refuses the second."""
    receiver = Receiver((204, 503))
    yield receiver
    receiver.stop()


def test_an_alert_is_added_tried_and_removed(cli: Cli, failing: Receiver) -> None:
    added = cli("alert", "create", "--webhook", f"{failing.url}/secret", "--on", "failed", "--on", "stalled")
    assert added.returncode == 0, added.stderr
    (secret,) = added.stdout.split()
    assert secret.startswith("whsec_")
    (alert,) = json.loads(cli("alert", "list", "--json").stdout)["items"]
    assert (alert["events"], alert["address"]) == (["failed", "stalled"], f"{failing.url}/…")
    assert "none yet" in cli("alert", "list").stdout
    tried = cli("alert", "test", alert["id"], "--json")
    assert (tried.returncode, json.loads(tried.stdout)["state"]) == (0, "delivered")
    assert is_signed(failing.got[0], secret)
    refused = cli("alert", "test", alert["id"])
    assert refused.returncode == 1
    assert "waiting: answered 503" in refused.stdout
    assert "answered 503" in cli("alert", "list").stdout
    off = cli("alert", "disable", alert["id"], "--json")
    assert (off.returncode, json.loads(off.stdout)["enabled"]) == (0, False)
    assert "disabled" in cli("alert", "list").stdout
    assert "receives messages again" in cli("alert", "enable", alert["id"]).stderr
    assert cli("alert", "delete", alert["id"]).returncode == 0
    gone = cli("alert", "delete", alert["id"])
    assert (gone.returncode, "ferret alert list" in gone.stderr) == (3, True)


def test_an_alert_of_an_experiment_that_is_not_there_is_refused(cli: Cli) -> None:
    missing = cli("alert", "create", "--webhook", "https://a.example", "--experiment", "exp_0000000000000000")
    assert (missing.returncode, "no such experiment" in missing.stderr) == (3, True)


def test_what_cannot_be_is_refused_with_what_to_do(cli: Cli) -> None:
    assert cli("alert", "create").returncode == 2
    assert cli("alert", "create", "--webhook", "https://a.example", "--email", "a@a.example").returncode == 2
    assert "FERRET_ALERT_NETWORKS" in cli("alert", "create", "--webhook", "http://169.254.169.254/latest").stderr
    no_mail = cli("alert", "create", "--email", "ada@example.org")
    assert (no_mail.returncode, "FERRET_SMTP_HOST" in no_mail.stderr) == (5, True)
