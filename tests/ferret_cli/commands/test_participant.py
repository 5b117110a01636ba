"""Participants that are enrolled, join, are approved and removed by command, at a server with real workers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.ferret_cli.commands.submitting import cli as cli
from tests.ferret_cli.commands.submitting import document
from tests.ferret_cli.commands.submitting import home as home
from tests.ferret_cli.commands.submitting import toy_file as toy_file


def test_a_participant_joins_by_command(cli, served, toy_file, toy_data, tmp_path, participant_command):
    submitted = cli("submit", toy_file, "--set", "participants={simulated=1, edge=1}", "--key", "joined")
    assert submitted.returncode == 0, submitted.stderr
    id = submitted.stdout.strip()
    assert cli("submit", toy_file, "--set", "rounds=5", "--key", "joined").returncode == 5
    code = document(cli("code", "create", id, "--json"))
    assert "ferret join" in code["command"]

    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"instruction": "a"\n')
    refused = participant_command("join", "--yes", served.service.url, "--data", broken, code=code["code"])
    assert refused.returncode == 1
    assert "line 1" in refused.stderr

    joined = participant_command(
        *("join", "--yes", served.service.url, "--data", toy_data[0], "--name", "مستشفى الأمل"),
        *("--keep-model", tmp_path / "tuned", "--json"),
        code=code["code"],
    )
    assert joined.returncode == 0, joined.stderr
    for said in ("downloading the base model", "round 1: training", "2 rounds, sent", f"is in {tmp_path / 'tuned'}"):
        assert said in joined.stderr
    (name,) = re.findall(
        rf"^مستشفى الأمل \((site-[0-9a-f]{{8}})\) takes part in {id} with", joined.stderr, re.MULTILINE
    )
    assert re.search(rf"^مستشفى الأمل +{name} +active", cli("participant", "list", id).stdout, re.MULTILINE)
    assert json.loads((tmp_path / "tuned" / "ferret.json").read_text())["round"] == 2
    rounds = [json.loads(line) for line in joined.stdout.splitlines()]
    assert [(round["round"], round["error"]) for round in rounds] == [(1, None), (2, None)]
    assert document(cli("experiment", "show", id, "--json"))["state"] == "completed"

    logged = document(participant_command("site", "log", "--json", code=""))["requests"]
    outcomes = [sent["outcome"] for sent in logged if sent["contribution"]]
    assert [outcome["state"] for outcome in outcomes] == ["in the round"] * 2
    last = document(cli("experiment", "verify", id, "--json"))["hashes"][-1]
    proved = participant_command("receipt", "verify", outcomes[-1]["receipt"], "--hash", last, "--json", code="")
    assert document(proved)["participant"] == name

    unknown = participant_command("join", "--yes", served.service.url, "--data", toy_data[0], code="spent-or-wrong")
    assert unknown.returncode == 4
    assert "new code" in unknown.stderr
    assert "ferret experiment" not in unknown.stderr

    elsewhere = participant_command("join", "--yes", served.service.url, "--data", toy_data[0], code=f"0000.{'x' * 43}")
    assert elsewhere.returncode == 4
    assert "another server (instance 0000…); ask the person who gave it to you" in elsewhere.stderr
    assert "next: run the same command with the address that you were given" in elsewhere.stderr


@contextmanager
def joining(served, environment, data, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A participant at work, as its owner starts it."""
    command = [sys.executable, "-m", "ferret_cli", "join", "--yes", served.service.url, "--data", str(data), *more]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as participant:
        yield participant


def said(participant: subprocess.Popen[str], words: str) -> None:
    """Waits until it has."""
    assert participant.stderr is not None
    next(line for line in participant.stderr if words in line)


@pytest.mark.slow
def test_a_participant_that_is_stopped_keeps_its_place(cli, served, toy_file, toy_data, participant_environment):
    id = cli("submit", toy_file, "--set", "participants={edge=2}").stdout.strip()
    environment = participant_environment(document(cli("code", "create", id, "--json"))["code"])
    for _ in range(2):
        with joining(served, environment, toy_data[0]) as participant:
            said(participant, "1 of 2 have joined")
            participant.send_signal(signal.SIGINT)
            assert "Your place" in participant.stderr.read()
        assert participant.returncode == 130
    cli("experiment", "cancel", id)


@pytest.mark.slow
def test_a_participant_is_approved_and_removed_by_command(cli, served, toy_file, toy_data, participant_environment):
    id = cli("submit", toy_file, "--set", "participants={edge=2}").stdout.strip()
    environment = participant_environment(document(cli("code", "create", id, "--approve", "--json"))["code"])
    assert re.search("open +– +needed", cli("code", "list", id).stdout)
    with joining(served, environment, toy_data[0], "--name", "clinic") as participant:
        said(participant, "waiting for the researcher's approval")
        assert re.search("clinic +clinic +pending", cli("participant", "list", id).stdout)
        assert "clinic takes part" in cli("participant", "approve", id, "clinic").stderr
        said(participant, "1 of 2 have joined")
        assert re.search("clinic +clinic +active", cli("participant", "list", id).stdout)
        refused = cli("participant", "refuse", id, "clinic", "--reason", "too late")
        assert (refused.returncode, "is active" in refused.stderr) == (5, True)
        revoked = cli("participant", "revoke", id, "clinic", "--reason", "left the study")
        assert "goes on without it" in revoked.stderr
        told = participant.stderr.read()
    assert participant.returncode == 4
    assert "The participant was removed from the experiment" in told
    assert "left the study" in told
    assert re.search(r"clinic +revoked .* left the study", cli("participant", "list", id).stdout)
    assert cli("participant", "revoke", id, "nobody").returncode == 3
    cli("experiment", "cancel", id)


def test_codes_of_a_group_are_made_listed_and_revoked_by_command(cli, toy_file):
    id = cli("submit", toy_file, "--set", "participants={edge=9}").stdout.strip()
    made = cli("code", "create", id, "--count", "3", "--group", "Northern hospitals")
    assert "each code is valid for one participant until" in made.stderr
    assert len(set(made.stdout.split())) == 3
    several = document(cli("code", "create", id, "--count", "2", "--group", "South", "--json"))
    assert [code["group"] for code in several["items"]] == ["South", "South"]
    listed = cli("code", "list", id, "--group", "Northern hospitals").stdout
    assert len(re.findall(r"open +Northern hospitals", listed)) == 3
    assert "South" not in listed
    revoked = cli("code", "revoke", id, "--group", "Northern hospitals")
    assert "codes of Northern hospitals revoked: 3" in revoked.stderr
    assert document(cli("code", "revoke", id, "--group", "South", "--json")) == {"revoked": 2}
    assert cli("participant", "revoke", id, "--group", "South").returncode == 3
    for command in ("participant", "code"):
        for arguments in ((), ("it", "--group", "South")):
            refused = cli(command, "revoke", id, *arguments)
            assert (refused.returncode, "or --group" in refused.stderr) == (2, True)
    cli("experiment", "cancel", id)
