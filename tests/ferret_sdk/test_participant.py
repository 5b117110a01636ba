"""A real participant against the real API, with the aggregation done beside it."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ExperimentState
from ferret_sdk import Participant, participant
from ferret_sdk.participant import RoundReport

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "participant"


@pytest.fixture
def examples(toy_data) -> Path:
    return toy_data[0]


@pytest.fixture
def submit(service, toy_spec):
    """Submits an experiment that waits for one real participant, and makes a code for it."""

    def make(simulated=1, **changes):
        run = service.submit(toy_spec(participants={"simulated": simulated, "edge": 1}, **changes))
        return run, service.enrolment(run.id).code

    return make


def take_part(one: Participant, examples: Path) -> tuple[ExperimentState, list[RoundReport]]:
    reports: list[RoundReport] = []
    return one.run(examples, on_round=reports.append), reports


def test_it_takes_part_in_every_round(api, worker, submit, examples, home):
    run, code = submit(rounds=3)
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    assert state == "completed"
    assert [report.round for report in reports] == [1, 2, 3]
    assert all(report.error is None and report.size > 0 and report.loss is not None for report in reports)
    mine = [one for one in run.contributions() if one.participant == "site-a"]
    assert [(one.kind, one.state, one.size) for one in mine] == [
        ("edge", "accepted", report.size) for report in reports
    ]
    assert run.refresh().experiment.round == 3


def test_a_participant_that_is_started_again_goes_on(api, worker, submit, examples, home):
    """The base model is not downloaded twice, the rounds missed are caught up with by the ledger."""
    _, code = submit(rounds=4)
    first = Participant.enrol(api.url, code, "site-a", home)

    class Killed(Exception): ...

    def after_two(report: RoundReport) -> None:
        if report.round == 2:
            raise Killed

    with pytest.raises(Killed):
        first.run(examples, on_round=after_two)
    (weights,) = home.glob("participants/*/base/model.safetensors")
    written = weights.stat().st_mtime_ns
    state, reports = take_part(Participant.enrol(api.url, code, "ignored", home), examples)
    assert state == "completed"
    assert [report.round for report in reports] == [3, 4]
    assert weights.stat().st_mtime_ns == written


def test_what_it_keeps_between_rounds_survives_a_restart(api, worker, submit, examples, home):
    """Top-K's error memory: with it lost, or taken from a wrong round, the final model would be another."""
    topk = {"name": "topk", "local": {"learning_rate": 1e-2, "steps": 2, "batch_size": 4, "accumulation": 1}}

    class Killed(Exception): ...

    def after_two(report: RoundReport) -> None:
        if report.round == 2:
            raise Killed

    digests = []
    for killed in (False, True):
        run, code = submit(simulated=0, rounds=4, algorithm=topk)
        if killed:
            with pytest.raises(Killed):
                Participant.enrol(api.url, code, "site-a", home).run(examples, on_round=after_two)
        state, _ = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
        assert state == "completed"
        digests.append(run.refresh().experiment.digest)
    assert digests[0] == digests[1]
    assert len(list(home.glob("participants/*/*-memory/*.safetensors"))) > 0


def test_the_token_is_private_and_a_code_works_once(api, submit, home, tmp_path):
    run, code = submit()
    Participant.enrol(api.url, code, "site-a", home)
    (kept,) = (home / "participants" / run.id).glob("*.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert code not in kept.read_text()
    assert json.loads(kept.read_text())["name"] == "site-a"
    with pytest.raises(FerretError) as raised:
        Participant.enrol(api.url, code, "site-b", tmp_path / "other")
    assert raised.value.code == "enrolment.invalid"


def test_bad_data_are_refused_before_the_server_is_asked(api, submit, home, tmp_path):
    _, code = submit()
    data = tmp_path / "data.jsonl"
    data.write_text('{"instruction": "a", "output": "b"}\n{"instruction": "a", "outp')
    one = Participant.enrol(api.url, code, "site-a", home)
    with pytest.raises(FerretError, match="line 2") as raised:
        one.run(data)
    assert raised.value.code == "dataset.invalid"
    assert str(data) in raised.value.detail


def test_what_goes_wrong_here_is_told_to_the_server(api, worker, submit, examples, home):
    run, code = submit(options={"local": {"learning_rate": 1e30, "steps": 4, "batch_size": 4}})
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    assert state == "failed"
    assert reports[0].error is not None
    assert reports[0].error.code == "training.non_finite"
    (mine,) = [one for one in run.contributions() if one.participant == "site-a"]
    assert mine.state == "rejected"
    assert mine.error is not None
    assert mine.error["code"] == "training.non_finite"
    with pytest.raises(FerretError):
        run.wait()


def test_a_long_training_keeps_its_lease(api, worker, submit, examples, home, monkeypatch):
    """Twice as long as the lease of 2 seconds; the heartbeats carry it."""
    _, code = submit(rounds=1)
    from ferret_core import participant as core

    contribute = core.contribute

    def slow(*arguments):
        time.sleep(4)
        return contribute(*arguments)

    monkeypatch.setattr(core, "contribute", slow)
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    assert state == "completed"
    assert [(report.round, report.error) for report in reports] == [(1, None)]


def test_cancelling_stops_the_work(api, worker, submit, examples, home):
    run, code = submit(simulated=0, options={"local": {"learning_rate": 1e-3, "steps": 100_000, "batch_size": 1}})

    def cancel_while_it_trains() -> None:
        while not any(one.state == "leased" for one in run.contributions()):
            time.sleep(0.05)
        run.cancel()

    canceller = threading.Thread(target=cancel_while_it_trains)
    canceller.start()
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    canceller.join()
    assert state == "cancelled"
    assert [report.error and report.error.code for report in reports] == ["lease.lost"]


def test_an_outage_is_waited_out(api, worker, submit, examples, home, monkeypatch):
    monkeypatch.setattr(participant, "OUTAGE_PAUSE", 0.2)
    _, code = submit(rounds=2)
    one = Participant.enrol(api.url, code, "site-a", home)

    def restart(report: RoundReport) -> None:
        if report.round == 1:
            api.stop()
            threading.Timer(2, api.start).start()

    assert one.run(examples, on_round=restart) == "completed"


def test_an_outage_without_end_is_given_up(api, submit, examples, home, monkeypatch):
    monkeypatch.setattr(participant, "OUTAGE_PAUSE", 0.05)
    monkeypatch.setattr(participant, "OUTAGE_SECONDS", 0.1)
    _, code = submit()
    one = Participant.enrol(api.url, code, "site-a", home)
    api.stop()
    try:
        with pytest.raises(FerretError) as raised:
            one.run(examples)
    finally:
        api.start()
    assert raised.value.code == "server.unreachable"
