"""A site's own functions against a real server: the model is the simulation's, and nothing of their errors leaves."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ferret_core.experiment.federated_data import deal
from ferret_core.protocol.errors import FerretError
from ferret_core.simulate import simulate
from ferret_sdk import Participant, Site
from ferret_sdk.service.run import Run
from tests.refusals import refused

pytestmark = pytest.mark.timeout(90)
CLIENT = "client-001"


@pytest.fixture
def site() -> Site:
    """AdamW with noise of its own on the gradients, drawn from torch's generator."""
    own = Site()

    @own.train
    def train(model: Any, examples: Any, context: Any) -> float:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for step, batch in enumerate(context.batches(), start=1):
            loss = model(**batch).loss
            loss.backward()
            for weight in model.parameters():
                weight.grad += 1e-3 * torch.randn_like(weight.grad)
            optimizer.step()
            optimizer.zero_grad()
            context.on_step(step)
        return loss.item()

    @own.evaluate
    def evaluate(model: Any, examples: Any, context: Any) -> float:
        return sum(model(**batch).loss.item() for batch in context.every_example())

    return own


@pytest.fixture
def enrolled(api, worker, service, toy_spec, tmp_path):
    """An experiment for one real participant that has a simulated client's name, so that its seeds are the same."""

    def make(**changes: Any) -> tuple[Run, Participant]:
        run = service.submit(toy_spec("ferret", **{"rounds": 2, **changes}, participants={"edge": 1}))
        code = run.create_code().code
        return run, Participant.enrol(api.url, code, CLIENT, tmp_path / "participant")

    return make


@pytest.fixture
def rows(toy_spec) -> list[dict[str, str]]:
    """What the one client of a simulation has, in its order."""
    dealt = deal(toy_spec(participants={"simulated": 1}))
    return [dealt.train[index]._asdict() for index in dealt.clients[CLIENT]]


def test_over_the_wire_it_gives_the_model_of_the_simulation(enrolled, toy_spec, rows, site):
    run, participant = enrolled()
    assert participant.run(rows, site=site) == "completed"
    expected = simulate(toy_spec("ferret", rounds=2, participants={"simulated": 1}), site=site)
    assert (
        run.refresh().experiment.digest
        == expected.digest
        != simulate(toy_spec("ferret", rounds=2, participants={"simulated": 1})).digest
    )
    told = {name: [point.value for point in points] for name, points in run.metrics().items()}
    assert told["participant_eval_loss"] == [done.metrics["participant_eval_loss"] for done in expected.rounds[1:]]
    assert told["train_loss"] == [done.metrics["train_loss"] for done in expected.rounds[1:]]


def test_an_algorithm_that_cannot_take_it_is_refused_before_the_download(enrolled, rows, site, tmp_path):
    _, participant = enrolled(algorithm={"name": "scaffold"})
    with refused("training.unsupported", "'scaffold'"):
        participant.run(rows, site=site)
    assert not list((tmp_path / "participant").glob("**/*.safetensors"))


def test_what_has_to_end_the_training_ends_the_sites_own_too(enrolled, rows, monkeypatch, site):
    """Each step of its loop asks whether the lease is still held."""
    _, participant = enrolled(rounds=1)
    lost = FerretError("lease.lost", "the experiment was cancelled")
    from ferret_sdk.participant import local_training

    checks: list[int] = []

    def check(self: Any) -> None:
        checks.append(1)
        if len(checks) == 2:
            raise lost

    monkeypatch.setattr(local_training.Heartbeat, "check", check)
    reports: list[Any] = []
    assert participant.run(rows, reports.append, site=site) == "completed"
    assert [report.error and report.error.code for report in reports] == ["lease.lost", None]
