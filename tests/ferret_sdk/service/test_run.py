from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.experiments import Experiment
from ferret_core.protocol.spec import ExperimentSpec
from ferret_sdk import Service
from ferret_sdk.http.transport import Transport
from ferret_sdk.service import run as run_module
from ferret_sdk.service.run import Run
from tests import documents
from tests.refusals import refused

SPEC = {
    "name": "x",
    "model": {"source": "/m"},
    "dataset": {"name": "jsonl", "train": "/d"},
    "participants": {"simulated": 2},
}
FILES = {"model.safetensors": b"weights" * 1000, "config.json": b"{}"}


def record(round: int) -> dict:
    digests = dict.fromkeys(("spec", "base_digest", "digest", "update", "previous"), "0" * 64)
    lists = {name: [] for name in ("contributions", "clipped", "refused", "signatures")}
    return {"version": 1, "experiment": "exp_0123456789abcdef", "round": round, "halvings": 0, **lists, **digests}


def artifact_id(round: int, name: str) -> str:
    return f"art_{round:015x}{list(FILES).index(name)}"


def artifacts(round: int) -> list[dict]:
    return [
        documents.artifact(
            id=artifact_id(round, name), round=round, name=name, size=len(data), digest=digest_bytes(data)
        )
        for name, data in FILES.items()
    ]


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(run_module, "POLL_SECONDS", 0.02)


@pytest.mark.heavy
def test_importing_the_sdk_loads_no_torch():
    program = "import ferret_sdk, sys; print([name for name in ('torch', 'transformers') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"


def test_submit_sends_the_spec_under_a_key(server, experiment):
    server.answer = lambda exchange: exchange.json(experiment, 202)
    service = Service(server.url, "t")
    assert service.submit(SPEC, key="mine").id == experiment["id"]
    service.submit(ExperimentSpec.model_validate(SPEC))
    first, second = server.requests
    assert first.headers["idempotency-key"] == "mine"
    assert json.loads(first.body) == SPEC
    assert len(second.headers["idempotency-key"]) == 32
    assert ExperimentSpec.model_validate_json(second.body).dataset.options == {"train": "/d"}


def test_a_lost_answer_to_submit_does_not_submit_twice(server, experiment):
    server.script(lambda exchange: exchange.drop(), lambda exchange: exchange.json(experiment, 202))
    Service(server.url).submit(SPEC)
    keys = {request.headers["idempotency-key"] for request in server.requests}
    assert len(server.requests) == 2
    assert len(keys) == 1


def test_what_a_newer_server_adds_is_ignored(server, experiment):
    server.answer = lambda exchange: exchange.json(experiment)
    run = Service(server.url).experiment(experiment["id"])
    assert "added_by_a_newer_server" in experiment
    assert "added_by_a_newer_server" not in run.experiment.model_dump()
    assert run.experiment.metrics["eval_loss"].last == 1.5


def test_experiments_are_paged(server):
    listed = documents.listed_experiment()
    server.script(
        lambda exchange: exchange.json(documents.page(listed, listed, next_cursor="abc")),
        lambda exchange: exchange.json(documents.page(listed)),
    )
    assert len(list(Service(server.url).experiments(state=["running"], name="demo"))) == 3
    assert server.requests[0].path == "/api/v1/experiments?state=running&name=demo"
    assert "cursor=abc" in server.requests[1].path


def test_tags_that_somebody_else_changed_are_read_again(server, experiment):
    problem = {"code": "experiment.changed", "detail": "read it again"}
    server.script(
        lambda exchange: exchange.json(experiment),
        lambda exchange: exchange.json({**experiment, "tags": ["a"]}),
        lambda exchange: exchange.json(problem, 412),
        lambda exchange: exchange.json({**experiment, "tags": ["a", "b"]}),
        lambda exchange: exchange.json({**experiment, "tags": ["b", "c"]}),
    )
    run = Service(server.url).experiment(experiment["id"])
    assert run.edit(tag=["c"], untag=["a"]).experiment.tags == ["b", "c"]
    assert json.loads(server.requests[2].body) == {"tags": ["c"]}
    assert json.loads(server.requests[4].body) == {"tags": ["b", "c"]}


def test_wait_returns_the_completed_run(server, experiment):
    server.script(
        lambda exchange: exchange.json(experiment),
        lambda exchange: exchange.json(experiment),
        lambda exchange: exchange.drop(),
        lambda exchange: exchange.json({**experiment, "state": "completed", "round": 3}),
    )
    assert Service(server.url).experiment(experiment["id"]).wait().experiment.round == 3


def test_wait_raises_the_experiments_own_error(server, experiment):
    error = {"code": "quorum.missed", "title": "No quorum", "detail": "round 1: 0 of 3 participants were accepted"}
    server.answer = lambda exchange: exchange.json({**experiment, "state": "failed", "error": error})
    with refused("quorum.missed"):
        Service(server.url).experiment(experiment["id"]).wait()


def test_wait_ends_in_time(server, experiment):
    server.answer = lambda exchange: exchange.json(experiment)
    with refused("experiment.timeout", "round 1"):
        Service(server.url).experiment(experiment["id"]).wait(timeout=0.1)


def test_the_ledger_is_read_to_its_end(server, experiment):
    def answer(exchange):
        if "/ledger" not in exchange.path:
            return exchange.json(experiment)
        after = int(exchange.path.split("after=")[1].split("&")[0])
        rounds = range(after + 1, min(after + 3, 6))
        items = [{"record": record(number), "hash": "0" * 64, "update_size": 1} for number in rounds]
        return exchange.json({"items": items})

    server.answer = answer
    run = Service(server.url).experiment(experiment["id"])
    assert [item.record["round"] for item in run.ledger()] == [1, 2, 3, 4, 5]


def test_a_page_of_the_ledger_that_leads_back_is_refused(server, experiment):
    page = {"items": [{"record": record(1), "hash": "0" * 64, "update_size": 1}]}
    server.answer = lambda exchange: exchange.json(page if "/ledger" in exchange.path else experiment)
    with refused("server.unexpected", "after round 1", field="round"):
        list(Service(server.url).experiment(experiment["id"]).ledger())


class TestExport:
    @pytest.fixture
    def run(self, server, experiment):
        def answer(exchange):
            if exchange.path.endswith("/artifacts"):
                return exchange.json(documents.page(*artifacts(0), *artifacts(2)))
            name = next((name for name in FILES for r in (0, 2) if exchange.path.endswith(artifact_id(r, name))), None)
            return exchange.send(200, FILES[name]) if name else exchange.json({**experiment, "spec": SPEC})

        server.answer = answer
        return Service(server.url).experiment(experiment["id"])

    def test_the_latest_checkpoint_is_taken(self, run, server, tmp_path):
        folder = run.export(tmp_path / "out" / "model")
        found = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert "| round | 2 of 3 |" in found.pop("README.md").decode()
        assert found == FILES
        assert [path.name for path in folder.parent.iterdir()] == ["model"]
        assert any(request.path.endswith(artifact_id(2, "config.json")) for request in server.requests)

    def test_a_list_of_files_on_many_pages_is_read_to_its_end(self, run, server, tmp_path):
        whole, pages = server.answer, {"": (artifacts(0), "two"), "two": (artifacts(2), None)}

        def answer(exchange):
            if "/artifacts?" not in exchange.path and not exchange.path.endswith("/artifacts"):
                return whole(exchange)
            items, cursor = pages[exchange.path.partition("cursor=")[2]]
            return exchange.json(documents.page(*items, next_cursor=cursor))

        server.answer = answer
        folder = run.export(tmp_path / "out")
        assert "| round | 2 of 3 |" in (folder / "README.md").read_text()
        assert {file.round for file in run.artifacts()} == {0, 2}

    def test_an_empty_folder_will_do(self, run, tmp_path):
        (tmp_path / "out").mkdir()
        assert len(list(run.export(tmp_path / "out", round=0).iterdir())) == 3

    def test_the_present_folder_will_do(self, run, tmp_path, monkeypatch):
        (tmp_path / "out").mkdir()
        monkeypatch.chdir(tmp_path / "out")
        run.export(".")
        assert {path.name for path in (tmp_path / "out").iterdir()} == {*FILES, "README.md"}

    def test_bytes_on_the_disk_need_no_room_again(self, run, tmp_path, monkeypatch):
        needed: list[int] = []
        monkeypatch.setattr(run_module, "require_room", lambda folder, size: needed.append(size))
        (tmp_path / "model.safetensors.part").write_bytes(b"weights" * 900)
        run.fetch(run.checkpoint(2), tmp_path)
        assert needed == [sum(map(len, FILES.values())) - 6300]

    def test_a_folder_with_files_is_left_alone(self, run, tmp_path):
        (tmp_path / "mine").write_text("keep")
        with refused("request.invalid", "not an empty folder"):
            run.export(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]

    def test_a_round_without_a_checkpoint_names_those_there_are(self, run, tmp_path):
        with refused("artifact.not_found", "0, 2") as raised:
            run.export(tmp_path / "out", round=1)
        assert raised.value.problem.exit == 3

    def test_a_broken_download_leaves_no_folder_behind(self, run, server, tmp_path):
        whole = server.answer
        server.answer = lambda exchange: (
            exchange.send(200, b"other" * 1400)
            if exchange.path.endswith(artifact_id(2, "model.safetensors"))
            else whole(exchange)
        )
        with pytest.raises(FerretError):
            run.export(tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_a_name_that_leads_out_of_the_folder_is_refused(self, run, server, tmp_path):
        evil = [{**artifacts(0)[0], "name": "../evil"}]
        server.answer = lambda exchange: exchange.json(documents.page(*evil))
        with refused("server.unexpected"):
            run.export(tmp_path / "out")


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel", "archive", "unarchive"])
def test_a_lost_answer_to_a_move_is_asked_for_again(server, experiment, verb):
    run = Run(Transport(server.url), Experiment.model_validate(experiment))
    server.script(lambda exchange: exchange.drop(), lambda exchange: exchange.json({**experiment, "state": "paused"}))
    assert getattr(run, verb)().state == "paused"
    paths = [(request.method, request.path) for request in server.requests]
    assert paths == [("POST", f"/api/v1/experiments/{run.id}:{verb}")] * 2


def test_an_extension_says_how_many_rounds_it_knows_of_so_that_it_counts_once(server, experiment):
    run = Run(Transport(server.url), Experiment.model_validate(experiment))
    server.script(lambda exchange: exchange.drop(), lambda exchange: exchange.json({**experiment, "rounds": 5}))
    assert run.extend(2).experiment.rounds == 5
    assert [json.loads(request.body) for request in server.requests] == [{"rounds": 2, "expected_rounds": 3}] * 2


def test_an_extension_after_an_early_stop_counts_from_there(server, experiment):
    stopped = {"round": 1, "detail": "no improvement", "best": {"metric": "eval_loss", "round": 0, "value": 2.0}}
    run = Run(Transport(server.url), Experiment.model_validate({**experiment, "round": 1, "stopped": stopped}))
    server.script(lambda exchange: exchange.json({**experiment, "rounds": 3}))
    run.extend(2)
    assert json.loads(server.requests[0].body) == {"rounds": 2, "expected_rounds": 1}


def test_a_clone_sends_the_changes_under_a_key(server, experiment):
    run = Run(Transport(server.url), Experiment.model_validate(experiment))
    clone = {**experiment, "id": "exp_00000000000c107e", "cloned_from": run.id}
    server.script(lambda exchange: exchange.drop(), lambda exchange: exchange.json(clone, 202))
    made = run.clone({"seed": 1, "round": {"quorum": None}})
    assert (made.id, made.experiment.cloned_from) == ("exp_00000000000c107e", run.id)
    assert run.id == experiment["id"]
    assert [json.loads(request.body) for request in server.requests] == [{"seed": 1, "round": {"quorum": None}}] * 2
    assert len({request.headers["idempotency-key"] for request in server.requests}) == 1


def test_deleting_what_is_gone_is_no_error(server, experiment):
    run = Run(Transport(server.url), Experiment.model_validate(experiment))
    gone = {"code": "experiment.not_found", "detail": "unknown", "status": 404}
    server.script(lambda exchange: exchange.drop(), lambda exchange: exchange.json(gone, 404))
    run.delete()
    assert [request.method for request in server.requests] == ["DELETE", "DELETE"]
    running = {"code": "experiment.conflict", "detail": "cancel it first", "status": 409}
    server.answer = lambda exchange: exchange.json(running, 409)
    with refused("experiment.conflict", "cancel it first"):
        run.delete()


def test_what_stalls_is_shown_as_stalled(experiment):
    stalled = {"code": "participants.missing", "detail": "1 of 2 have joined", "since": "2026-01-01T00:00:00Z"}
    shown = Experiment.model_validate({**experiment, "stalled": stalled})
    assert (shown.state, shown.shown_state) == ("running", "stalled")
    assert Experiment.model_validate(experiment).shown_state == "running"
