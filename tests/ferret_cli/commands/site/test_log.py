"""``ferret site log`` as an administrator uses it: it asks no server."""

from __future__ import annotations

import json

import httpx

from ferret_sdk.sent_log import SentLog


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
