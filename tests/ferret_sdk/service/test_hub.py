"""A tuned model goes to the hub: once, whole, private, and by a message that says which model it is.

By the command in a process of its own: the hub's library reads its settings when it is imported. Its other way to send
large files, Xet, is switched off, because there is no server for it to talk to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ferret_core.protocol.digest import digest_bytes
from tests import documents
from tests.ferret_sdk.service.hub_server import MAIN, OWNER, TOKEN, Hub
from tests.ferret_sdk.service.test_run import SPEC

pytestmark = pytest.mark.heavy

NAME = f"{OWNER}/words"
WEIGHTS = b"weights" * 1000
Push = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        yield hub


@pytest.fixture
def files(experiment: dict[str, Any]) -> dict[str, bytes]:
    """The checkpoint that the server has."""
    beside = {"config.json": b"{}", "model.safetensors": WEIGHTS}
    digests = {name: digest_bytes(data) for name, data in beside.items()}
    manifest = {"format": 1, "experiment": experiment["id"], "round": 2, "digest": "d" * 64, "files": digests}
    return beside | {"ferret.json": json.dumps(manifest).encode()}


@pytest.fixture
def push(server: Any, experiment: dict[str, Any], files: dict[str, bytes], hub: Hub, tmp_path: Path) -> Push:
    """``push("owner/name", …)``: the command; ``TOKEN=…`` and the like are further variables."""
    ids = {f"art_{number:016x}": name for number, name in enumerate(files)}

    def answer(exchange: Any) -> None:
        if exchange.path.endswith("/artifacts"):
            return exchange.json(documents.page(*(artifact(id, name, files[name]) for id, name in ids.items())))
        name = ids.get(exchange.path.rpartition("/")[2])
        return exchange.send(200, files[name]) if name else exchange.json({**experiment, "spec": SPEC})

    def run(name: str, *options: str, **extra: str) -> subprocess.CompletedProcess[str]:
        server.answer = answer
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("FERRET_", "HF_"))}
        home = str(tmp_path / "home")
        ours = {"FERRET_URL": server.url, "FERRET_TOKEN": "token", "FERRET_HOME": home, "NO_COLOR": "1"}
        theirs = {"HF_ENDPOINT": hub.url, "HF_HOME": home, "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": TOKEN}
        folder = str(tmp_path / "model")
        command = [sys.executable, "-m", "ferret_cli", "experiment", "export", experiment["id"], folder, "--push", name]
        environment = {**kept, **ours, **theirs, "NO_PROXY": "*", **extra}
        return subprocess.run([*command, *options], env=environment, capture_output=True, text=True, timeout=120)

    return run


def artifact(id: str, name: str, data: bytes) -> dict[str, Any]:
    return documents.artifact(id=id, round=2, name=name, size=len(data), digest=digest_bytes(data))


def test_the_model_its_card_and_nothing_else_is_in_a_private_repository(
    push: Push, hub: Hub, files: dict[str, bytes], experiment: dict[str, Any], tmp_path: Path
) -> None:
    done = push(NAME, "--json")
    assert done.returncode == 0, done.stderr
    repository, found = hub.repositories[NAME], dict(hub.repositories[NAME].branches[MAIN])
    assert repository.private
    assert b"| round | 2 of 3 |" in found.pop("README.md")
    assert found == {**files, ".gitattributes": b""}
    assert repository.commits == [(MAIN, f"{experiment['id']}, round 2: model {'d' * 64}")]
    assert json.loads(done.stdout)["hub"] == {"url": f"{hub.url}/{NAME}", "commit": f"{1:040x}"}

    (tmp_path / "model" / "notes.txt").write_text("for me alone")
    assert push(NAME).returncode == 0
    assert (len(repository.commits), hub.uploads) == (1, 1), "nothing has changed: nothing is sent"
    (tmp_path / "model" / "README.md").write_text("A better card.")
    assert push(NAME).returncode == 0
    assert (repository.branches[MAIN]["README.md"], hub.uploads) == (b"A better card.", 1)
    assert "notes.txt" not in repository.branches[MAIN]


@pytest.mark.slow
def test_an_upload_that_broke_off_goes_on_where_it_was(push: Push, hub: Hub) -> None:
    hub.failures["/commit/"] = [500]
    broken = push(NAME)
    assert broken.returncode == 6
    assert "the hub answered 500" in broken.stderr
    assert "run the same command again: what has arrived is not sent twice" in broken.stderr
    assert push(NAME).returncode == 0
    assert hub.uploads == 1
    assert hub.repositories[NAME].branches[MAIN]["model.safetensors"] == WEIGHTS


@pytest.mark.slow
def test_weights_of_another_model_do_not_stay_beside_it(push: Push, hub: Hub) -> None:
    assert push(NAME).returncode == 0
    files = hub.repositories[NAME].branches[MAIN]
    files |= {"model-00001-of-00002.safetensors": b"old", "model.safetensors.index.json": b"{}", "mine.md": b"mine"}
    files["config.json"] = b"old"
    assert push(NAME).returncode == 0
    assert {name for name in files if "safetensors" in name} == {"model.safetensors"}
    assert (files["config.json"], files["mine.md"]) == (b"{}", b"mine")


@pytest.mark.slow
def test_a_branch_of_its_own(push: Push, hub: Hub) -> None:
    assert push(NAME, "--branch", "round-2").returncode == 0
    branches = hub.repositories[NAME].branches
    assert "model.safetensors" in branches["round-2"]
    assert "model.safetensors" not in branches[MAIN]
    assert push(NAME, "--branch", "round-2").returncode == 0


@pytest.mark.slow
def test_everybody_may_read_it_only_where_that_is_said(push: Push, hub: Hub) -> None:
    assert push(NAME, "--public").returncode == 0
    assert not hub.repositories[NAME].private
    refused = push(NAME)
    assert refused.returncode == 5
    assert f"{NAME} is there already and everybody can read it" in refused.stderr


@pytest.mark.parametrize(
    ("name", "variables", "exit", "said"),
    [
        (NAME, {"HF_TOKEN": ""}, 4, f"there is no token for {NAME}: set HF_TOKEN"),
        (NAME, {"HF_TOKEN": "hf_wrong"}, 4, "the hub does not know the token: set HF_TOKEN to one that may write"),
        ("others/words", {}, 4, "the token may not write to others/words"),
        (NAME, {"HF_HUB_OFFLINE": "1"}, 6, "HF_HUB_OFFLINE is set: unset it to push"),
        (NAME, {"HF_ENDPOINT": "http://127.0.0.1:1"}, 6, f"the hub does not take {NAME}"),
        ("words", {}, 2, "must be OWNER/NAME"),
        (f"{OWNER}/two words", {}, 2, "must be OWNER/NAME"),
    ],
)
def test_what_the_hub_refuses_is_told_before_anything_is_downloaded(
    push: Push, tmp_path: Path, name: str, variables: dict[str, str], exit: int, said: str
) -> None:
    refused = push(name, **variables)
    assert (refused.returncode, refused.stdout) == (exit, "")
    assert said in " ".join(refused.stderr.split())
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_two_who_push_at_once_are_told_of_each_other(push: Push, hub: Hub) -> None:
    hub.failures["/commit/"] = [412]
    refused = push(NAME)
    assert refused.returncode == 5
    assert f"somebody else changes {NAME} just now" in " ".join(refused.stderr.split())
