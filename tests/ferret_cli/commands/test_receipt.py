"""``ferret receipt verify`` as somebody uses it who has nothing but the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LAST = json.loads((ROOT / "tests/vectors/ledger.json").read_text(encoding="utf-8"))[1]


@pytest.fixture
def receipt(tmp_path: Path) -> Path:
    """The receipt of ward-9, whose contribution was refused."""
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps({"header": LAST["header"], "hash": LAST["hash"], **LAST["receipts"]["ward-9"]}))
    return path


def test_a_receipt_that_holds_says_what_it_proves(ferret_in_process, receipt: Path) -> None:
    done = ferret_in_process("receipt", "verify", receipt, "--hash", LAST["hash"], "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["round"], said["participant"], said["contribution"]) == (2, "ward-9", "c2" * 32)
    assert (said["state"], said["hash"], said["compared"]) == ("refused", LAST["hash"], True)
    assert "round 2 of exp_0123456789abcdef holds contribution c2c2" in done.stderr
    assert "refused, its update is 12.5 times as long" in done.stderr
    assert "signed with" in done.stderr
    bare = ferret_in_process("receipt", "verify", receipt)
    assert bare.returncode == 0
    assert "to be compared" in bare.stdout
    assert bare.stderr == ""


def test_what_proves_nothing_is_named_with_its_file(ferret_in_process, receipt: Path) -> None:
    other = ferret_in_process("receipt", "verify", receipt, "--hash", "00" * 32)
    assert other.returncode == 1
    assert f"is not the hash of round 2 in this receipt, {LAST['hash']}" in other.stderr
    receipt.write_text(receipt.read_text().replace("c2" * 32, "c3" * 32))
    changed = ferret_in_process("receipt", "verify", receipt, "--json")
    assert changed.returncode == 1
    assert json.loads(changed.stdout)["code"] == "receipt.invalid"
    assert "receipt.json" in changed.stderr
    assert ferret_in_process("receipt", "verify", "nowhere.json").returncode == 1
