"""A participant in another language, made of the published format alone, in a real experiment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_sdk import Participant

EXAMPLE = Path(__file__).parents[2] / "examples" / "participant_minimal"


@pytest.fixture
def node(need) -> str:
    found = shutil.which("node")
    need(found is not None, "the participant in JavaScript needs Node 20")
    return str(found)


def test_its_blake3_is_blake3(node: str) -> None:
    sizes = [0, 1, 64, 65, 1023, 1024, 1025, 2048, 2049, 3072, 5000, 16_384, 31_745]
    script = (
        f"import {{ blake3 }} from '{(EXAMPLE / 'blake3.mjs').as_uri()}'\n"
        f"for (const size of {sizes}) console.log(blake3(Uint8Array.from({{ length: size }}, (_, i) => i % 251)))"
    )
    said = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    assert said.stdout.split() == [digest_bytes(bytes(i % 251 for i in range(size))) for size in sizes]


def test_it_takes_part_in_every_round_beside_ours(api, worker, service, toy_spec, toy_data, tmp_path, node) -> None:
    algorithm = {"name": "fedavg", "local": {"learning_rate": 1e-3, "steps": 1, "batch_size": 2, "accumulation": 1}}
    run = service.submit(toy_spec(participants={"edge": 2}, rounds=2, algorithm=algorithm))
    environment = {**os.environ, "FERRET_CODE": service.enrolment(run.id).code}
    command = [node, str(EXAMPLE / "participant.mjs"), api.url, "node-20"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as other:
        ours = Participant.enrol(api.url, service.enrolment(run.id).code, "python", tmp_path)
        assert ours.run(toy_data[0]) == "completed"
        said, _ = other.communicate(timeout=30)
    assert other.returncode == 0
    receipts = [json.loads(line) for line in said.splitlines()]
    assert [(receipt["round"], receipt["accepted"]) for receipt in receipts] == [(1, True), (2, True)]
    for record, receipt in zip((item.parsed() for item in run.ledger()), receipts, strict=True):
        assert dict(record.contributions)["node-20"] == receipt["digest"]
        assert {signature.participant for signature in record.signatures} == {"node-20", "python"}
    ours.keep_model(tmp_path / "tuned")  # walks the ledger and checks both signatures
