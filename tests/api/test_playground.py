"""Questions to models: over HTTP, through a real broker, answered by a real worker process."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from sqlalchemy import select
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from ferret_api.settings import ApiSettings
from ferret_cli.stack.child import Child
from ferret_core.datasets.tokenization.chat_template import fitting
from ferret_core.evaluation.streaming_generation import answer, question_ids
from ferret_core.models.load import load
from ferret_core.protocol.spec import ModelSpec
from ferret_core.protocol.task_names import Queue
from ferret_core.replica import checkpoint
from ferret_core.replica.replica import Replica
from ferret_core.sample import model_path
from ferret_core.storage import FileKind
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_db.repositories import artifacts, workers
from ferret_db.tables import Worker
from tests.api.conftest import Live, spec
from tests.api.receiver import eventually
from tests.api.test_broker import Redis
from tests.api.test_broker import server as server

PATIENCE_SECONDS = 120.0
Event = tuple[str, dict[str, Any]]


class Asked(NamedTuple):
    """A live service with a broker of its own, a worker, and an experiment with checkpoints of rounds 0 and 1."""

    live: Live
    worker: Child
    experiment_id: str
    database: Any

    def events(self, **ask: Any) -> list[Event]:
        with self.stream(**ask) as events:
            return list(events)

    @contextmanager
    def stream(self, **ask: Any) -> Iterator[Iterator[Event]]:
        body = {"question": "Repeat the sentence.", "input": "Anna has a red kite.", **ask}
        asking = self.live.admin.stream("POST", self.url, json=body, timeout=PATIENCE_SECONDS)
        with asking as response:
            if response.status_code != 200:
                response.read()
                raise AssertionError(response.text)
            assert response.headers["content-type"].startswith("text/event-stream")
            yield _events(response.iter_lines())

    @property
    def url(self) -> str:
        return f"/api/v1/experiments/{self.experiment_id}/playground"

    def ready(self) -> None:
        """Waits until the worker has said that it is there."""
        eventually(lambda: self._spoke() or self.worker.exit_code is not None, PATIENCE_SECONDS)
        assert self.worker.exit_code is None, self.worker.last_lines()

    def _spoke(self) -> bool:
        with self.database.read() as s:
            return s.scalar(select(Worker).where(Worker.pid == self.worker.pid)) is not None

    def restart(self) -> None:
        self.worker.wait(30)
        self.worker.start()
        self.ready()


def _events(lines: Iterator[str]) -> Iterator[Event]:
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


def texts(events: list[Event], side: str) -> str:
    return "".join(data["text"] for kind, data in events if kind == "text" and data["side"] == side)


def kinds(events: list[Event]) -> list[str]:
    return [kind for kind, _ in events if kind not in ("text", "waiting")]


def write(live: Live, replica: Replica, round: int, scratch: Path) -> list[ArtifactFile]:
    """A checkpoint in the service's storage."""
    replica.round = round
    folder = scratch / f"round-{round}"
    folder.mkdir()
    checkpoint.write(replica, "exp_0000000000007e57", folder)
    stored = live.site.context.storage.put_folder(folder, FileKind.CHECKPOINT, last=checkpoint.MANIFEST)
    return [ArtifactFile(name, file.size, file.digest, file.location) for name, file in stored.items()]


def shake(replica: Replica, noise: float) -> None:
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in replica.model.parameters():
            weight.add_(noise * torch.randn(weight.shape, generator=generator))


def experiment(live: Live, model: Path, scratch: Path, *, noise: float = 0.0, **changes: Any) -> str:
    """One whose model after round 1 is ``model``, with some noise, and whose base has far more of it."""
    site = live.site
    experiment_id = site.submit(model={"source": str(model)}, **changes)
    tuned = Replica.load(spec(model={"source": str(model)}))
    base = Replica.load(spec(model={"source": str(model)}))
    shake(tuned, noise)
    shake(base, 0.05)
    site.start(experiment_id, write(live, base, 0, scratch))
    site.committed(experiment_id, files=write(live, tuned, 1, scratch))
    return experiment_id


def start_worker(home: Path, broker_url: str, name: str = "playground", **environment: str) -> Child:
    settings = {
        "FERRET_HOME": str(home),
        "FERRET_BROKER_URL": broker_url,
        "FERRET_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "FERRET_LEASE_SECONDS": "8",
        **environment,
    }
    command = [sys.executable, "-P", "-m", "ferret_worker", "playground"]
    child = Child(name, command, home / "logs" / f"{name}.log", settings)
    child.start()
    return child


@pytest.fixture(scope="module")
def patient(make_shared_settings: Callable[..., ApiSettings], server: Redis) -> Iterator[tuple[Live, str]]:
    """A live service with a private broker."""
    live = Live(make_shared_settings(broker_url=server.url, playground_per_minute=1000, playground_tokens=2048))
    yield live, server.url
    live.stop()


@pytest.fixture(scope="module")
def asked(patient: tuple[Live, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    live, url = patient
    data = tmp_path_factory.mktemp("held-out")
    for part, rows in (("train", 4), ("test", 3)):
        lines = [
            json.dumps({"instruction": "Repeat.", "input": f"{part} {n}", "output": f"{part} {n}"}) for n in range(rows)
        ]
        (data / f"{part}.jsonl").write_text("\n".join(lines))
    dataset = {"name": "jsonl", "train": str(data / "train.jsonl"), "test": str(data / "test.jsonl")}
    experiment_id = experiment(live, model_path(), tmp_path_factory.mktemp("models"), dataset=dataset)
    worker = start_worker(live.site.context.settings.home, url)
    asked = Asked(live, worker, experiment_id, live.site.database)
    asked.ready()
    yield asked
    worker.kill()


@pytest.fixture(scope="module")
def long_winded(asked: Asked, tmp_path_factory: pytest.TempPathFactory, tiny_model_dir: Path) -> Asked:
    """The same service with an experiment whose models never come to an end: thousands of tokens of noise."""
    folder = tmp_path_factory.mktemp("long") / "model"
    config = LlamaConfig.from_pretrained(tiny_model_dir)
    config.max_position_embeddings = 8192
    config.eos_token_id = 383
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        model.lm_head.weight[1] = 0
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_model_dir).save_pretrained(folder)
    experiment_id = experiment(asked.live, folder, tmp_path_factory.mktemp("long-models"))
    return asked._replace(experiment_id=experiment_id)


def test_both_models_answer_token_by_token_as_chat_does(asked: Asked) -> None:
    events = asked.events(max_new_tokens=40)
    assert kinds(events) == ["loading", "done", "loading", "done", "end"]
    assert [data["side"] for kind, data in events if kind == "loading"] == ["tuned", "base"]
    assert len([data for kind, data in events if kind == "text" and data["side"] == "tuned"]) > 1
    model, tokenizer, _ = load(ModelSpec(source=str(model_path())))
    tokenizer.chat_template = fitting(tokenizer, "paper")
    expected = answer(model, tokenizer, question_ids(tokenizer, "Repeat the sentence.", "Anna has a red kite."), 40)
    assert texts(events, "tuned") == expected.text
    done = next(data for kind, data in events if kind == "done")
    assert (done["tokens"], done["ended"]) == (expected.tokens, expected.ended)
    assert texts(events, "base") != expected.text


def test_a_seed_draws_the_same_answer_again(asked: Asked) -> None:
    drawn = [texts(asked.events(temperature=1.5, seed=seed, compare=False), "tuned") for seed in (3, 4, 3)]
    assert drawn[0] == drawn[2] != drawn[1]


def test_the_base_model_is_asked_alone(asked: Asked) -> None:
    events = asked.events(round=0)
    assert kinds(events) == ["loading", "done", "end"]
    assert texts(events, "tuned") == ""


def test_a_held_out_example_comes_with_its_references(asked: Asked) -> None:
    drawn = [asked.live.admin.post(f"{asked.url}/example", json={"seed": seed}, timeout=60).json() for seed in (1, 7)]
    assert drawn[0] == {"number": 1, "question": "Repeat.", "input": "test 1", "references": ["test 1"]}
    assert drawn[1] == drawn[0]
    told = asked.live.admin.get("/api/v1/audit", params={"action": "example.drawn"}).json()["items"]
    assert {(entry["actor"], entry["detail"]["number"]) for entry in told} >= {
        ("admin", each["number"]) for each in drawn
    }


def test_what_cannot_be_asked_is_refused_before_a_word(asked: Asked) -> None:
    def refusal(**ask: Any) -> tuple[int, str]:
        found = asked.live.admin.post(asked.url, json={"question": "Repeat.", **ask})
        return found.status_code, found.json()["code"]

    assert refusal(round=7) == (404, "artifact.not_found")
    assert refusal(question=" ") == (422, "request.invalid")
    assert refusal(temperature=3) == (422, "request.invalid")
    assert refusal(max_new_tokens=2049) == (422, "request.invalid")
    missing = asked.live.admin.post("/api/v1/experiments/exp_0/playground", json={"question": "Repeat."})
    assert missing.json()["code"] == "experiment.not_found"


def test_a_question_that_fills_the_context_is_told_its_length(asked: Asked) -> None:
    kind, data = asked.events(question="kite " * 2000)[-1]
    assert (kind, data["code"]) == ("problem", "request.invalid")
    assert "shorten it" in data["detail"]
    assert len(data["request_id"]) >= 8


def test_a_checkpoint_with_a_damaged_file_says_so_and_is_repaired(asked: Asked, tmp_path: Path) -> None:
    live = asked.live
    experiment_id = experiment(live, model_path(), tmp_path, noise=1e-4)
    with asked.database.read() as s:
        weights = next(file for file in artifacts.of_round(s, experiment_id, 1) if file.name.endswith(".safetensors"))
    live.site.context.storage.path(weights.location).unlink()
    kind, data = asked._replace(experiment_id=experiment_id).events()[-1]
    assert (kind, data["code"]) == ("problem", "storage.missing")
    assert "it is being rebuilt" in data["detail"]


def test_who_hangs_up_stops_the_worker(long_winded: Asked) -> None:
    with long_winded.stream(max_new_tokens=2048, compare=False) as events:
        next(event for event in events if event[0] == "text")
    begun = time.monotonic()
    assert kinds(long_winded.events(max_new_tokens=2, compare=False)) == ["loading", "done", "end"]
    assert "the requester has gone" in long_winded.worker.log.read_text()
    assert time.monotonic() - begun < PATIENCE_SECONDS


@pytest.mark.slow
def test_one_waits_while_another_is_answered(long_winded: Asked) -> None:
    with long_winded.stream(max_new_tokens=2048, compare=False) as first:
        next(event for event in first if event[0] == "text")
        second: list[Event] = []
        thread = threading.Thread(target=lambda: second.extend(long_winded.events(max_new_tokens=2, compare=False)))
        thread.start()
        assert kinds(list(first))[-1] == "end"
        thread.join(PATIENCE_SECONDS)
    assert kinds(second) == ["loading", "done", "end"]


@pytest.mark.slow
def test_a_worker_that_is_killed_midway_is_noticed_and_another_answers(
    long_winded: Asked, patient: tuple[Live, str]
) -> None:
    with long_winded.stream(max_new_tokens=2048, compare=False) as events:
        next(event for event in events if event[0] == "text")
        assert long_winded.worker.pid is not None
        os.kill(long_winded.worker.pid, signal.SIGKILL)
        kind, data = list(events)[-1]
    assert (kind, data["code"]) == ("problem", "playground.interrupted")
    long_winded.restart()
    assert kinds(long_winded.events(max_new_tokens=2, compare=False)) == ["loading", "done", "end"]


def test_without_a_broker_nobody_waits(site: Any) -> None:
    experiment_id = site.running()
    with site.database.begin() as s:
        workers.seen(s, workers.WorkerIdentity("w", Queue.PLAYGROUND, "host", 1, "cpu"))
    found = site.admin.post(f"/api/v1/experiments/{experiment_id}/playground/example", json={})
    assert (found.status_code, found.json()["code"]) == (503, "broker.missing")


def test_questions_are_limited_by_user(make_settings: Any, serve: Callable[[ApiSettings], Live]) -> None:
    live = serve(make_settings(playground_per_minute=2))
    url = f"/api/v1/experiments/{live.site.running()}/playground/example"
    codes = [live.admin.post(url, json={}).json()["code"] for _ in range(3)]
    assert codes == ["playground.unavailable", "playground.unavailable", "request.too_many"]
