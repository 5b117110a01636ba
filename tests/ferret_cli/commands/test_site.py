"""``ferret site …`` as an administrator uses it: it asks no server, and shows nothing of the data."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from ferret_cli.options import field_names
from ferret_cli.os_service import KINDS, place
from ferret_core.privacy.mechanism import RecordMechanism
from ferret_core.protocol.states import ExperimentState
from ferret_sdk.participant import membership
from ferret_sdk.participant.egress_log import SentLog, carrying
from ferret_sdk.participant.membership import note_end
from ferret_sdk.participant.paths import ParticipantPaths
from ferret_sdk.participant.record_account import RecordAccount, accounts
from ferret_sdk.participant.usage_counter import Usage
from tests import documents
from tests.ferret_sdk.participant.test_record_account import spec_of
from tests.refusals import refused

ENDED, GOES_ON = "exp_00000000000000aa", "exp_00000000000000bb"

LAST = json.loads((Path(__file__).parents[3] / "tests/vectors/ledger.json").read_text(encoding="utf-8"))[1]

JOIN = ("https://ferret.example.org", "--data", "records.jsonl")


@pytest.fixture
def site(home: Path) -> Path:
    """A home with one membership that has ended and one that goes on."""
    for experiment, participant in ((ENDED, "par_00000000000000aa"), (GOES_ON, "par_00000000000000bb")):
        member = documents.membership(experiment=experiment, participant=participant)
        membership.save(home, member)
        places = ParticipantPaths(home, experiment, participant)
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


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    rows = [{"question": "Name it.", "case": "fever", "answer": "flu"}, {"question": "Name it.", "answer": "asthma"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_careful_terms_are_written_once(tmp_path, ferret_in_process) -> None:
    home = tmp_path / "home"
    written = ferret_in_process("site", "init", FERRET_HOME=str(home))
    assert (written.returncode, str(home / "site.toml") in written.stderr) == (0, True)
    terms = json.loads(ferret_in_process("site", "status", "--json", FERRET_HOME=str(home)).stdout)["terms"]
    assert terms["allow"]["models"] == []
    assert terms["allow"]["whole_blocks"] is False
    assert all(value is not None for value in terms["limits"].values()), "every limit has a value"
    (home / "site.toml").write_text("[limits]\nsteps = 1\n")
    refused = ferret_in_process("site", "init", FERRET_HOME=str(home))
    assert (refused.returncode, "exists" in refused.stderr) == (2, True)
    assert (home / "site.toml").read_text() == "[limits]\nsteps = 1\n"


def test_a_file_with_names_of_its_own_is_counted(ferret_in_process, records):
    names = ["--field", "instruction=question", "--field", "input=case", "--field", "output=answer"]
    done = ferret_in_process("site", "check", records, *names, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"examples": 2, "without_input": 1, "longest_answer": 6}
    assert "flu" not in done.stdout + done.stderr
    bare = ferret_in_process("site", "check", records, *names)
    told = "2 examples, 1 without an input; the longest answer has 6 characters\n"
    assert (bare.stdout, bare.stderr) == (told, "")


def test_a_missing_field_is_told_with_those_there_are_and_what_to_do(ferret_in_process, records):
    done = ferret_in_process("site", "check", records)
    assert done.returncode == 1
    assert "line 1: field 'instruction' is missing (it has 'question', 'case', 'answer')" in done.stderr
    assert "--field" in done.stderr


@pytest.mark.parametrize("given", [["instruction"], ["output=a", "output=b"]])
def test_a_field_is_two_names_and_given_once(given: list[str]) -> None:
    with refused("request.invalid", "OURS=YOURS"):
        field_names(given)


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_writes_a_file_for_its_owner_and_no_code(
    kind: str, ferret_in_process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "code.txt").write_text("a-secret-code\n")
    done = ferret_in_process("site", "install", "clinic", "--kind", kind, "--", *JOIN, "--code-file", "code.txt")
    assert done.returncode == 0, done.stderr
    file = tmp_path / place(kind, "clinic")
    assert str(file) in done.stderr
    assert b"code.txt" in file.read_bytes().replace(b"\0", b"")
    assert b"a-secret-code" not in file.read_bytes().replace(b"\0", b"")
    assert file.stat().st_mode & 0o077 == 0


def test_print_shows_it_and_writes_nothing(ferret_in_process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "code.txt").write_text("a-secret-code\n")
    asked = ("site", "install", "clinic", "--kind", "systemd", "--print", "--", *JOIN, "--code-file=code.txt")
    done = ferret_in_process(*asked)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "[Unit]")
    document = json.loads(ferret_in_process(*asked[:6], "--json", *asked[6:]).stdout)
    assert document == {"kind": "systemd", "file": done.stdout}
    assert not (tmp_path / ".config").exists()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("Clinic 7", "--", *JOIN, "--code-file", "code.txt"), "not a valid service name"),
        (("clinic", "--", *JOIN, "--code", "a-secret-code"), "must not hold an enrolment code"),
        (("clinic", "--", *JOIN), "with --code-file FILE"),
        (("clinic", "--", *JOIN, "--code-file", "nowhere.txt"), "cannot be read"),
        (("clinic", "--kind", "upstart", "--", *JOIN), "choose one of systemd, launchd, windows"),
    ],
)
def test_what_cannot_be_installed_is_said(
    asked: tuple[str, ...], message: str, ferret_in_process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "code.txt").write_text("a-secret-code\n")
    done = ferret_in_process("site", "install", *asked)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "a-secret-code" not in done.stderr


def test_the_log_is_shown_verified_and_compared_with_a_head(home, ferret_in_process) -> None:
    noting = SentLog(home).noting("exp_0123456789abcdef", "site-a")
    for content in (b"", b"first", b"second"):
        noting(httpx.Request("POST", "https://ferret.test/x", content=content))
    shown = ferret_in_process("site", "log")
    assert shown.returncode == 0, shown.stderr
    assert [line.split()[0] for line in shown.stdout.splitlines()[:-1]] == ["number", "2", "3"]
    assert "3 requests, 11 B in bodies; the chain is unbroken" in shown.stdout.splitlines()[-1]
    document = json.loads(ferret_in_process("site", "log", "--all", "--json").stdout)
    assert [sent["size"] for sent in document["requests"]] == [0, 5, 6]
    assert ferret_in_process("site", "log", "--head", document["head"]).returncode == 0

    path = SentLog(home).path
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    assert ferret_in_process("site", "log").returncode == 0
    cut = ferret_in_process("site", "log", "--head", document["head"], "--json")
    assert cut.returncode == 1
    assert json.loads(cut.stdout)["code"] == "audit.broken"
    assert "number 3 was noted" in cut.stderr


def test_it_says_what_became_of_each_contribution(home, ferret_in_process) -> None:
    noting = SentLog(home).noting(LAST["header"]["experiment"], "ward-9")
    for number, digest in ((2, "c2" * 32), (6, "c6" * 32), (7, "c7" * 32), (8, "c8" * 32)):
        with carrying(number, digest):
            noting(httpx.Request("PUT", "https://ferret.test/x", content=b"contribution"))
    folder = home / "participants" / LAST["header"]["experiment"] / "par_0123456789abcdef-receipts"
    folder.mkdir(parents=True)
    receipt = {"header": LAST["header"], "hash": LAST["hash"], **LAST["receipts"]["ward-9"]}
    (folder / "round-2.json").write_text(json.dumps(receipt))
    notes = [{"round": 6, "digest": "c6" * 32, "missing": "undone"}, {"round": 7, "digest": "c7" * 32}]
    (folder / "acknowledged.json").write_text(json.dumps({"rounds": notes}))

    shown = ferret_in_process("site", "log")
    assert shown.returncode == 0, shown.stderr
    first, second, third, last = shown.stdout.splitlines()[1:-1]
    assert "refused: its update is 12.5 times" in first
    assert second.rstrip().endswith("left out: undone")
    assert third.rstrip().endswith("acknowledged")
    assert last.rstrip().endswith("–")
    requests = json.loads(ferret_in_process("site", "log", "--json").stdout)["requests"]
    assert requests[0]["outcome"]["receipt"] == str(folder / "round-2.json")
    assert [sent["outcome"] and sent["outcome"]["state"] for sent in requests[1:]] == ["left out", "acknowledged", None]

    (folder / "round-2.json").write_text("{}")
    broken = ferret_in_process("site", "log")
    assert broken.returncode == 1
    assert "round-2.json" in broken.stderr


def test_status_tells_what_records_have_lost(site: Path, ferret_in_process) -> None:
    RecordAccount(site, GOES_ON).spend(spec := spec_of(), RecordMechanism.of(spec, 5))
    (totals,) = accounts(site).values()
    shown = ferret_in_process("site", "status")
    assert f"records in {GOES_ON}: ε = {totals.epsilon:.2f} of 8.00 is spent" in shown.stdout
    document = json.loads(ferret_in_process("site", "status", "--json").stdout)
    assert document["records"] == {GOES_ON: totals._asdict()}


@pytest.mark.heavy
def test_status_tells_memberships_disk_terms_and_budget(site: Path, ferret_in_process) -> None:
    shown = ferret_in_process("site", "status")
    assert shown.returncode == 0, shown.stderr
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert [ENDED, "clinic", "https://ferret.test", "completed", "1", "7", "1.50", "h", "0", "B"] in rows
    assert [GOES_ON, "clinic", "https://ferret.test", "goes", "on", "1", "7", "1.50", "h", "0", "B"] in rows
    assert ["base", "model", ENDED, "–", "3.0", "kB", str(site / "participants" / ENDED / "base")] in rows
    assert "mon tue wed thu fri 07:00-19:00" in shown.stdout
    assert "ε = 0.00 of 8 is spent at δ = 1e-06" in shown.stdout
    assert "a-secret-token" not in shown.stdout + shown.stderr
    document = json.loads(ferret_in_process("site", "status", "--json").stdout)
    assert [(one["experiment"], one["ended"]) for one in document["memberships"]] == [
        (ENDED, "completed"),
        (GOES_ON, None),
    ]
    assert document["privacy"]["contributions_left"] > 10
    assert "a-secret-token" not in json.dumps(document)


def test_clean_deletes_what_has_ended_after_asking(site: Path, ferret_in_process, monkeypatch) -> None:
    folder = site / "participants"
    before = sorted(folder.rglob("*"))
    dry = ferret_in_process("site", "clean", "--dry-run")
    assert "would delete 4 things" in dry.stdout
    assert ferret_in_process("site", "clean").returncode == 1, "nobody answered"
    assert sorted(folder.rglob("*")) == before

    done = ferret_in_process("site", "clean", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert {piece["experiment"] for piece in json.loads(done.stdout)["deleted"]} == {ENDED}
    assert not (folder / ENDED).exists()
    assert (folder / GOES_ON / "base" / "model.safetensors").exists()
    assert (folder / "sent.jsonl").exists()
    assert "deleted 0 things" in ferret_in_process("site", "clean", "--yes").stdout

    base = ferret_in_process("site", "clean", "--yes", "--base-models")
    assert "deleted 1 things" in base.stdout
    assert (folder / GOES_ON / "par_00000000000000bb.json").exists()
    assert ferret_in_process("site", "clean", "exp_1", "--yes").returncode == 3
    assert ferret_in_process("site", "clean", GOES_ON, "--yes").returncode == 0
    assert not (folder / GOES_ON).exists()
