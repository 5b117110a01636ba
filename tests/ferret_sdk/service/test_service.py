"""The SDK against the real API: what one says is what the other understands."""

from __future__ import annotations

import inspect
import math
import re
from pathlib import Path

import pytest
import tomli_w
from transformers import AutoModelForCausalLM, AutoTokenizer

import ferret_sdk
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.simulate import simulate
from ferret_sdk import Participant, Run, Service
from ferret_sdk.service.projects import Alerts, Projects
from ferret_sdk.service.users import Users
from tests.digests import digest_of
from tests.refusals import refused

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.timeout(90)


@pytest.mark.slow
def test_an_experiment_from_submission_to_the_loaded_checkpoint(service, worker, toy_spec, tmp_path):
    spec = toy_spec("ferret", rounds=2)
    run = service.submit(spec).wait(timeout=60)
    events = list(run.events())
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[-1].type == "experiment.completed"
    assert list(run.events(after=events[-1].seq)) == []
    assert [event.type for event in run.past_events()] == [event.type for event in events]

    assert [round.number for round in run.rounds()] == [1, 2]
    assert run.round(2).accepted == 3
    assert len(list(run.contributions(round=1))) == 3
    assert [point.round for point in run.metrics()["eval_loss"]] == [0, 1, 2]
    assert run.experiment.metrics["eval_loss"].last == run.metrics()["eval_loss"][-1].value

    ledger = list(run.ledger())
    assert [item.record["round"] for item in ledger] == [1, 2]
    assert digest_bytes(run.update(2)) == ledger[1].record["update"]
    assert list(run.ledger(after=2)) == []

    statistics, alone = run.update_statistics(), simulate(spec).rounds[2].statistics
    assert statistics.round == 2
    assert sum(statistics.sizes) == sum(math.prod(shape) for shape in run.experiment.shapes.values())
    assert statistics.step == pytest.approx(alone.step, rel=1e-3)
    assert statistics.projection_noise.percent > 0
    assert run.update_statistics(1).step != statistics.step

    folder = run.export(tmp_path / "tuned")
    model = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True)
    AutoTokenizer.from_pretrained(folder)
    assert digest_of(model, spec.model.source) == run.experiment.digest == simulate(spec).digest


def test_what_the_server_refuses_arrives_as_the_same_error(service, toy_spec):
    with refused("spec.invalid") as raised:
        service.submit(toy_spec("nonsense"))
    assert raised.value.errors[0].field == "algorithm.name"
    with pytest.raises(FerretError) as raised:
        service.experiment("exp_0000000000000000")
    assert raised.value.problem.exit == 3
    with pytest.raises(FerretError) as raised:
        Service(service.url, "wrong").info()
    assert raised.value.problem.exit == 4


def test_lists_filters_and_cancelling(service, toy_spec):
    runs = [service.submit(toy_spec(algorithm)) for algorithm in ("ferret", "fedavg", "ferret")]
    assert runs[0].cancel().state == "cancelled"
    assert runs[0].cancel().state == "cancelled"
    assert [found.id for found in service.experiments()] == [run.id for run in reversed(runs)]
    assert [found.id for found in service.experiments(algorithm="fedavg")] == [runs[1].id]
    assert [found.id for found in service.experiments(state=["cancelled"])] == [runs[0].id]
    with refused("experiment.conflict", "cancelled"):
        runs[0].wait()


def test_an_experiment_is_found_by_the_beginning_of_its_id_by_name_and_as_the_latest(service, toy_spec):
    first, second = (service.submit(toy_spec("ferret", name=name)) for name in ("one of a kind", "two of a kind"))
    for given in (first.id, first.id[:-1], "one of a kind"):
        assert service.experiment(given).id == first.id
    assert service.experiment("latest").id == second.id
    with refused("experiment.not_found") as raised:
        service.experiment("exp_")
    assert {first.id, second.id} <= set(re.findall(r"exp_\w{16}", raised.value.detail))


def test_the_package_shows_its_public_names_and_documents_them():
    assert dir(ferret_sdk) == sorted(ferret_sdk.__all__)
    for owner in (Service, Run, Participant, Users, Projects, Alerts):
        members = {name: member for name, member in vars(owner).items() if not name.startswith("_")}
        assert [name for name, member in members.items() if not inspect.getdoc(member)] == []


def test_info_and_catalog(service):
    assert service.info().database == "sqlite"
    assert {"ferret", "fedavg"} <= {entry.name for entry in service.catalog("algorithms")}
    assert "properties" in service.catalog("datasets")[0].options
    assert service.catalog("models")


def test_events_go_on_after_the_server_was_restarted(api, service, toy_spec):
    run = service.submit(toy_spec())
    events = run.events()
    assert next(events).type == "experiment.queued"
    api.stop()
    api.start()
    run.cancel()
    assert [event.type for event in events] == ["experiment.cancelled"]


def test_the_documented_program_runs(service, worker, toy_spec, tmp_path, monkeypatch):
    (block,) = re.findall(
        r"```python\n(from ferret_sdk import .*?)```", (ROOT / "docs/researchers/experiments.md").read_text(), re.DOTALL
    )
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/quickstart.toml").write_text(tomli_w.dumps(toy_spec(rounds=1).model_dump(exclude_none=True)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FERRET_URL", service.url)
    monkeypatch.setenv("FERRET_TOKEN", "an-admin-token-for-the-tests")
    names = {}
    exec(block, names)
    assert list(names["curves"].index) == [0, 1]
    assert (tmp_path / "tuned-model/README.md").is_file()
