"""A participant in another language, made of the published format alone, in a real experiment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.digest import digest_bytes
from ferret_sdk import Participant
from ferret_sdk.http.transport import read_model

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "participant_minimal"
LEDGER = json.loads((ROOT / "tests/vectors/ledger.json").read_text(encoding="utf-8"))


@pytest.fixture
def node(need) -> str:
    found = shutil.which("node")
    need(found is not None, "the participant in JavaScript needs Node 20")
    return str(found)


@pytest.mark.heavy
def test_its_blake3_is_blake3(node: str) -> None:
    sizes = [0, 1, 64, 65, 1023, 1024, 1025, 2048, 2049, 3072, 5000, 16_384, 31_745]
    script = (
        f"import {{ blake3 }} from '{(EXAMPLE / 'blake3.mjs').as_uri()}'\n"
        f"for (const size of {sizes}) console.log(blake3(Uint8Array.from({{ length: size }}, (_, i) => i % 251)))"
    )
    said = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    assert said.stdout.split() == [digest_bytes(bytes(i % 251 for i in range(size))) for size in sizes]


@pytest.mark.heavy
def test_it_takes_the_published_receipts_and_none_that_was_changed(node: str) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = []
    for vector in LEDGER:
        for name, told in vector["receipts"].items():
            receipt = {"header": vector["header"], "hash": vector["hash"], **told}
            leaf = json.loads(told["leaf"])
            sent = {"round": vector["header"]["round"], "participant": name, "contribution": leaf["contribution"]}
            cases.append((receipt, sent, vector["hash"]))
    holding = len(cases)
    receipt, sent, hash = [case for case in cases if case[0]["header"]["size"] == 5][-2]
    cases += [
        ({**receipt, "path": receipt["path"][:-1]}, sent, hash),
        ({**receipt, "path": [*receipt["path"], hash]}, sent, hash),
        ({**receipt, "path": receipt["path"][::-1]}, sent, hash),
        ({**receipt, "index": 0}, sent, hash),
        ({**receipt, "index": 5}, sent, hash),
        ({**receipt, "leaf": receipt["leaf"] + " "}, sent, hash),
        ({**receipt, "header": {**receipt["header"], "size": 6}}, sent, hash),
        (receipt, {**sent, "contribution": "00" * 32}, hash),
        (receipt, {**sent, "signature": "00" * 64}, hash),
        (receipt, sent, "00" * 32),
    ]
    script = (
        f"import {{ check }} from '{(EXAMPLE / 'receipt.mjs').as_uri()}'\n"
        "const holds = (each) => { try { check(...each); return true } catch { return false } }\n"
        f"console.log(JSON.stringify({json.dumps(cases)}.map(holds)))"
    )
    said = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == [True] * holding + [False] * (len(cases) - holding)


def test_it_takes_part_in_every_round_beside_ours(api, worker, service, toy_spec, toy_data, tmp_path, node) -> None:
    algorithm = {"name": "fedavg", "local": {"learning_rate": 1e-3, "steps": 1, "batch_size": 2, "accumulation": 1}}
    run = service.submit(toy_spec(participants={"edge": 2}, rounds=2, algorithm=algorithm))
    environment = {**os.environ, "FERRET_CODE": run.create_code().code}
    command = [node, str(EXAMPLE / "participant.mjs"), api.url, "node-20"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as other:
        ours = Participant.enrol(api.url, run.create_code().code, "python", tmp_path)
        assert ours.run(toy_data[0]) == "completed"
        said, _ = other.communicate(timeout=30)
    assert other.returncode == 0
    told = [json.loads(line) for line in said.splitlines()]
    taken, receipts = told[:2], told[2:]
    assert [(answer["round"], answer["accepted"]) for answer in taken] == [(1, True), (2, True)]
    for record, answer in zip((read_model(LedgerRecord, item.record) for item in run.ledger()), taken, strict=True):
        assert dict(record.contributions)["node-20"] == answer["digest"]
        assert {signature.participant for signature in record.signatures} == {"node-20", "python"}
    hashes = [item.hash for item in run.ledger()]
    assert [(receipt["round"], receipt["receipt"]) for receipt in receipts] == list(enumerate(hashes, start=1))
    ours.keep_model(tmp_path / "tuned")  # walks the ledger and checks both signatures
