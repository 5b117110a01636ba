"""``ferret site status`` and ``ferret site clean`` as an administrator uses them: they ask no server."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from ferret_core.protocol.signatures import new_key
from ferret_core.protocol.states import ExperimentState
from ferret_sdk.participant import membership
from ferret_sdk.participant.egress_log import SentLog, carrying
from ferret_sdk.participant.membership import Membership
from ferret_sdk.participant.membership_files import note_end
from ferret_sdk.participant.paths import Places
from ferret_sdk.participant.usage_counter import Usage

ENDED, GOES_ON = "exp_00000000000000aa", "exp_00000000000000bb"


@pytest.fixture
def site(home: Path) -> Path:
    """A home with one membership that has ended and one that goes on."""
    for experiment, participant in ((ENDED, "par_00000000000000aa"), (GOES_ON, "par_00000000000000bb")):
        member = Membership(
            url="https://ferret.test",
            experiment=experiment,
            participant=participant,
            name="clinic",
            display_name="clinic",
            token="secret-token",
            code="0" * 64,
            key=new_key(),
        )
        membership.save(home, member)
        places = Places(home, experiment, participant)
        places.base.mkdir()
        (places.base / "model.safetensors").write_bytes(bytes(3000))
        with carrying(7, "c" * 64):
            SentLog(home).noting(experiment, "clinic")(httpx.Request("PUT", "https://ferret.test/x", content=b"x"))
        Usage(places.usage).trained(5400)
        if experiment == ENDED:
            note_end(places.ended, ExperimentState.COMPLETED)
    (home / "site.toml").write_text(
        "[allow]\nquiet_hours = ['mon-fri 07:00-19:00']\n"
        "[privacy]\nclip = 1.0\nnoise_multiplier = 8.0\nepsilon = 8.0\ndelta = 1e-6\n"
    )
    return home


@pytest.mark.heavy
def test_status_tells_memberships_disk_terms_and_budget(site: Path, ferret_in_process) -> None:
    shown = ferret_in_process("site", "status")
    assert shown.returncode == 0, shown.stderr
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert [ENDED, "clinic", "https://ferret.test", "completed", "1", "7", "1.50", "h", "0", "B"] in rows
    assert [GOES_ON, "clinic", "https://ferret.test", "goes", "on", "1", "7", "1.50", "h", "0", "B"] in rows
    assert ["base", "model", ENDED, "–", "3.0", "kB", str(site / "participants" / ENDED / "base")] in rows
    assert "mon tue wed thu fri 07:00-19:00" in shown.stderr
    assert "ε = 0.00 of 8 is spent at δ = 1e-06" in shown.stderr
    assert "secret-token" not in shown.stdout + shown.stderr
    document = json.loads(ferret_in_process("site", "status", "--json").stdout)
    assert [(one["experiment"], one["ended"]) for one in document["memberships"]] == [
        (ENDED, "completed"),
        (GOES_ON, None),
    ]
    assert document["privacy"]["contributions_left"] > 10
    assert "secret-token" not in json.dumps(document)


def test_clean_deletes_what_has_ended_after_asking(site: Path, ferret_in_process, monkeypatch) -> None:
    folder = site / "participants"
    before = sorted(folder.rglob("*"))
    dry = ferret_in_process("site", "clean", "--dry-run")
    assert "would delete 4 things" in dry.stderr
    assert ferret_in_process("site", "clean").returncode == 1, "nobody answered"
    assert sorted(folder.rglob("*")) == before

    done = ferret_in_process("site", "clean", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert {piece["experiment"] for piece in json.loads(done.stdout)["deleted"]} == {ENDED}
    assert not (folder / ENDED).exists()
    assert (folder / GOES_ON / "base" / "model.safetensors").exists()
    assert (folder / "sent.jsonl").exists()
    assert "deleted 0 things" in ferret_in_process("site", "clean", "--yes").stderr

    base = ferret_in_process("site", "clean", "--yes", "--base-models")
    assert "deleted 1 things" in base.stderr
    assert (folder / GOES_ON / "par_00000000000000bb.json").exists()
    assert ferret_in_process("site", "clean", "exp_1", "--yes").returncode == 3
    assert ferret_in_process("site", "clean", GOES_ON, "--yes").returncode == 0
    assert not (folder / GOES_ON).exists()
