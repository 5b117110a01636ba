"""``ferret site log`` as an administrator uses it: it asks no server."""

from __future__ import annotations

import json
from pathlib import Path

import httpx

from ferret_sdk.participant.egress_log import SentLog, carrying

LAST = json.loads((Path(__file__).parents[4] / "tests/vectors/ledger.json").read_text(encoding="utf-8"))[1]


def test_the_log_is_shown_verified_and_compared_with_a_head(home, ferret_in_process) -> None:
    noting = SentLog(home).noting("exp_0123456789abcdef", "site-a")
    for content in (b"", b"first", b"second"):
        noting(httpx.Request("POST", "https://ferret.test/x", content=content))
    shown = ferret_in_process("site", "log")
    assert shown.returncode == 0, shown.stderr
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["number", "2", "3"]
    assert "3 requests, 11 B in bodies; the chain is unbroken" in shown.stderr
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
    first, second, third, last = shown.stdout.splitlines()[1:]
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
