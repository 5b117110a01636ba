"""A real participant against the real API, with the aggregation done beside it."""

from __future__ import annotations

import json
import threading
import time
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ferret_core.client import local_round as core
from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ExperimentState, WaitReason
from ferret_sdk import Participant
from ferret_sdk.http import retry
from ferret_sdk.http.transport import Answer, Transport, read_model
from ferret_sdk.participant import membership, receipts, uploader
from ferret_sdk.participant.egress_log import SentLog
from ferret_sdk.participant.receipts import outcomes
from ferret_sdk.service.progress import Progress, RoundReport, Stage
from ferret_sdk.service.run import Run
from tests.refusals import refused

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

    def make(simulated=1, of="toy", **changes):
        run = service.submit(toy_spec(of, participants={"simulated": simulated, "edge": 1}, **changes))
        return run, run.create_code().code

    return make


def take_part(site: Participant, examples: Path) -> tuple[ExperimentState, list[RoundReport]]:
    reports: list[RoundReport] = []
    return site.run(examples, on_round=reports.append), reports


def test_it_takes_part_in_every_round(api, worker, submit, examples, home):
    run, code = submit(rounds=3)
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    assert state == "completed"
    assert [report.round for report in reports] == [1, 2, 3]
    assert all(report.error is None and report.size > 0 and report.loss is not None for report in reports)
    mine = [contribution for contribution in run.contributions() if contribution.participant == "site-a"]
    assert [(contribution.kind, contribution.state, contribution.size) for contribution in mine] == [
        ("edge", "accepted", report.size) for report in reports
    ]
    assert run.refresh().experiment.round == 3


@pytest.mark.parametrize("name", ["מרפאה בחיפה", "é" * 200])
def test_a_name_in_any_script_is_read_by_people_and_stands_in_no_path(api, worker, submit, examples, home, name):
    run, code = submit(simulated=0, rounds=1)
    site = Participant.enrol(api.url, code, name, home)
    assert site.run(examples) == "completed"
    (listed,) = run.participants()
    (contribution,) = run.contributions()
    assert (listed.display_name, listed.name) == (name, site.member.name)
    assert (contribution.display_name, contribution.participant) == (name, site.member.name)
    (record,) = run.ledger()
    assert site.member.name in json.dumps(record.record)
    assert all(str(path).isascii() for path in home.rglob("*"))


def test_every_round_has_a_receipt_and_only_the_last_costs_a_request(api, worker, submit, examples, home):
    run, code = submit(rounds=3)
    assert Participant.enrol(api.url, code, "site-a", home).run(examples) == "completed"
    sent = list(SentLog(home).read())
    digests = {request.round: request.contribution for request in sent if request.contribution}
    found = outcomes(home)
    for item in run.ledger():
        record = read_model(LedgerRecord, item.record)
        outcome = found[digests[record.round]]
        assert outcome.state == "in the round"
        assert receipts.read(outcome.receipt).hash == item.hash
        assert receipts.read(outcome.receipt) == run.receipt(record.round, "site-a")
        assert receipts.read(outcome.receipt).header.size == 2
    assert [request.url for request in sent if "receipts" in request.url] == []
    assert len([request for request in sent if "/ledger" in request.url]) == 3  # before rounds 2 and 3, after the last


def test_two_participants_of_one_home_share_its_base_model(api, worker, service, toy_spec, examples, home, monkeypatch):
    """The second waits for the first's download, and then finds the files there."""
    run = service.submit(toy_spec(participants={"edge": 2}, rounds=1))
    sites = [Participant.enrol(api.url, run.create_code().code, name, home) for name in ("site-a", "site-b")]
    told: list[Progress] = []
    fetch = Run.fetch

    def slowly(*arguments: Any, **options: Any) -> Any:
        time.sleep(1)
        return fetch(*arguments, **options)

    monkeypatch.setattr(Run, "fetch", slowly)
    threads = [threading.Thread(target=site.run, args=[examples, None, told.append]) for site in sites]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert run.refresh().experiment.state == "completed"
    assert [item.stage for item in told].count(Stage.TURN) == 1
    assert sum(site.totals.bytes_down for site in sites) < 2 * sum(file.size for file in run.checkpoint(0))


def test_whoever_watches_is_told_of_every_stage(api, worker, service, submit, examples, home):
    run, code = submit(rounds=2)
    told: list[Progress] = []
    site = Participant.enrol(api.url, code, "site-a", home)
    site.run(examples, on_progress=told.append)
    assert [stage for stage, _ in groupby(item.stage for item in told if item.stage != Stage.WAIT)] == [
        *(Stage.DOWNLOAD, Stage.TRAIN, Stage.UPLOAD),
        *(Stage.CATCH_UP, Stage.TRAIN, Stage.UPLOAD),
    ]
    downloaded = [item for item in told if item.stage == Stage.DOWNLOAD]
    assert downloaded[-1].done == downloaded[-1].total == sum(file.size for file in run.checkpoint(0))
    steps = run.experiment.spec["algorithm"]["local"]["steps"]
    trained = [(item.done, item.total) for item in told if item.stage == Stage.TRAIN and item.round == 1]
    assert trained == [(step, steps) for step in range(steps + 1)]
    sent = [item.total for item in told if item.stage == Stage.UPLOAD]
    totals = site.totals
    assert (totals.rounds, totals.bytes_up >= sum(sent) > 0) == (2, True)
    assert totals.bytes_down > downloaded[-1].total
    assert totals.seconds > 0


def test_a_participant_learns_for_whom_it_waits(api, worker, service, toy_spec, examples, home):
    run = service.submit(toy_spec(participants={"edge": 2}, rounds=1))
    first = Participant.enrol(api.url, run.create_code().code, "site-a", home)
    told: list[Progress] = []
    others: list[threading.Thread] = []

    def then_the_other(progress: Progress) -> None:
        if not told and progress.awaited == WaitReason.PARTICIPANTS:
            other = Participant.enrol(api.url, run.create_code().code, "site-b", home / "b")
            others.append(threading.Thread(target=other.run, args=[examples]))
            others[0].start()
            told.append(progress)

    assert first.run(examples, on_progress=then_the_other) == "completed"
    others[0].join()
    assert told == [Progress(Stage.WAIT, 0, 1, 2, WaitReason.PARTICIPANTS)]


# Two threads set filters here, the worker's and this one: what one of them ignores may reach the other.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize("algorithm", ["ferret", "fedit", "fed_sb"])
def test_the_tuned_model_is_kept_as_the_ledger_proves_it(
    api, worker, service, submit, examples, home, tmp_path, algorithm
):
    local = {"learning_rate": 1e-3, "steps": 2, "batch_size": 2, "accumulation": 1}
    public = {"public_examples": 2} if algorithm == "fed_sb" else {}
    run, code = submit(rounds=2, algorithm={"name": algorithm, "local": local, **public})
    site = Participant.enrol(api.url, code, "site-a", home)
    assert site.run(examples) == "completed"
    kept = site.keep_model(tmp_path / "tuned")
    run.refresh()
    assert (kept.round, kept.digest) == (2, run.experiment.digest)
    written = {file.name: file.digest for file in run.checkpoint() if file.name.endswith(".safetensors")}
    assert written.items() <= kept.files.items()
    exported = run.export(tmp_path / "exported")
    for name in ("README.md", "chat_template.jinja"):
        assert (tmp_path / "tuned" / name).read_bytes() == (exported / name).read_bytes()
    with pytest.raises(FerretError) as raised:
        site.keep_model(tmp_path / "tuned")
    assert (raised.value.code, raised.value.errors[0].field) == ("request.invalid", "folder")


def test_its_own_examples_are_prompted_as_the_experiment_says(api, worker, submit, examples, home):
    """All else being equal, the loss that it reports depends on the template, and on what a token limit cuts."""
    losses = []
    for prompt in ({}, {"template": "alpaca"}, {"max_tokens": 50}):
        _, code = submit(simulated=0, rounds=1, prompt=prompt)
        _, (report,) = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
        losses.append(report.loss)
    assert len(set(losses)) == 3


def test_what_it_keeps_between_rounds_survives_a_restart(api, worker, submit, examples, home):
    """Top-K's error memory: with it lost, or taken from a wrong round, the final model would be another."""
    topk = {"name": "topk", "local": {"learning_rate": 1e-2, "steps": 2, "batch_size": 4, "accumulation": 1}}

    class Killed(Exception): ...

    def after_two(report: RoundReport) -> None:
        if report.round == 2:
            raise Killed

    def written(run: Run) -> int:
        return (home / "participants" / run.id / "base" / "model.safetensors").stat().st_mtime_ns

    digests, before = [], 0
    for killed in (False, True):
        run, code = submit(simulated=0, rounds=4, algorithm=topk)
        if killed:
            with pytest.raises(Killed):
                Participant.enrol(api.url, code, "site-a", home).run(examples, on_round=after_two)
            before = written(run)
        state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
        assert state == "completed"
        assert [report.round for report in reports] == ([3, 4] if killed else [1, 2, 3, 4])
        assert not killed or written(run) == before, "the base model is not downloaded twice"
        digests.append(run.refresh().experiment.digest)
    assert digests[0] == digests[1]
    assert len(list(home.glob("participants/*/*-memory/*.safetensors"))) > 0


class Cut(BaseException):
    """The process ends here."""


class Wire:
    """Counts how often a participant trains and with which keys it uploads, and cuts or refuses as told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trained = 0
        self.keys: list[str] = []
        self.before: list[BaseException] = []
        self.after: list[BaseException] = []
        contribute, request = core.contribute, Transport.request

        def counted(*arguments: Any) -> Any:
            self.trained += 1
            return contribute(*arguments)

        def watched(transport: Transport, method: str, path: str, **options: Any) -> Answer:
            if method != "PUT":
                return request(transport, method, path, **options)
            self.keys.append(options["headers"]["Idempotency-Key"])
            if self.before:
                raise self.before.pop(0)
            answer = request(transport, method, path, **options)
            if self.after:
                raise self.after.pop(0)
            return answer

        monkeypatch.setattr(core, "contribute", counted)
        monkeypatch.setattr(Transport, "request", watched)


@pytest.fixture
def wire(monkeypatch) -> Wire:
    return Wire(monkeypatch)


def test_a_code_is_exchanged_again_after_a_crash_that_lost_the_answer(api, worker, submit, examples, home, monkeypatch):
    run, code = submit(simulated=0, rounds=1)
    with monkeypatch.context() as crash:
        crash.setattr(membership, "save", Mock(side_effect=Cut))
        with pytest.raises(Cut):
            Participant.enrol(api.url, code, "site-a", home)
    assert Participant.enrol(api.url, code, "site-a", home).run(examples) == "completed"
    assert [listed.name for listed in run.participants()] == ["site-a"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_was_made_before_a_crash_is_sent_and_not_made_again(api, worker, submit, examples, home, wire, moment):
    """The process ends just before its upload leaves, or after it arrived and before the answer did."""
    run, code = submit(rounds=1)
    getattr(wire, moment).append(Cut())
    with pytest.raises(Cut):
        Participant.enrol(api.url, code, "site-a", home).run(examples)
    assert len(list(home.glob("participants/*/*-upload/upload.json"))) == 1
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    assert state == "completed"
    assert wire.trained == 1
    assert len(set(wire.keys)) == 1
    # The answer to an upload that had arrived may come after the round has moved on: then nothing is left to tell.
    assert [report.round for report in reports] in ([1], [])
    assert not list(home.glob("participants/*/*-upload/upload.json"))
    (mine,) = [contribution for contribution in run.contributions() if contribution.participant == "site-a"]
    assert mine.state == "accepted"


def test_what_was_made_during_an_outage_is_sent_when_it_is_over(api, worker, submit, examples, home, wire, monkeypatch):
    monkeypatch.setattr(retry, "FIRST_OUTAGE_PAUSE", 0.1)
    monkeypatch.setattr(uploader, "PATIENT", 1)
    run, code = submit(simulated=0, rounds=1)
    site = Participant.enrol(api.url, code, "site-a", home)
    reports: list[RoundReport] = []
    contribute = core.contribute

    def while_the_server_goes(*arguments: Any) -> Any:
        made = contribute(*arguments)
        api.stop()
        threading.Timer(1, api.start).start()
        return made

    monkeypatch.setattr(core, "contribute", while_the_server_goes)
    assert site.run(examples, on_round=reports.append) == "completed"
    assert [report.error and report.error.code for report in reports] == ["server.unreachable", None]
    assert wire.trained == 1
    assert len(set(wire.keys)) == 1
    assert [item.state for item in run.contributions()] == ["accepted"]


def test_a_lease_that_ran_out_costs_no_second_training(api, worker, submit, examples, home, wire):
    """Refused under the lost lease, the contribution goes out under the next one for the same assignment."""
    run, code = submit(simulated=0, rounds=1)
    wire.before.append(FerretError("lease.lost", "the lease ran out"))
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    assert state == "completed"
    assert [report.error and report.error.code for report in reports] == ["lease.lost", None]
    assert wire.trained == 1
    assert len(set(wire.keys)) == 1
    assert [item.state for item in run.contributions()] == ["accepted"]


def test_a_resync_starts_over_from_the_base_model(api, worker, submit, examples, home, wire):
    _, code = submit(simulated=0, rounds=2)
    wire.before.append(FerretError("contribution.wrong_base", "resync, rebuild the model from the ledger"))
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    assert state == "completed"
    assert [(report.round, report.error) for report in reports] == [(1, None), (2, None)]
    assert wire.trained == 3
    assert len(set(wire.keys)) == 3


def test_a_closed_round_is_left_for_the_next(api, worker, submit, examples, home, wire):
    _, code = submit(rounds=2)
    wire.before.append(FerretError("round.closed", "round 1 is committed; the current round is 2"))
    site = Participant.enrol(api.url, code, "site-a", home)
    reports: list[RoundReport] = []

    class Seen(Exception): ...

    def look(report: RoundReport) -> None:
        reports.append(report)
        if len(reports) == 1:
            assert not list(home.glob("participants/*/*-upload/upload.json")), "it will never be taken"
        else:
            raise Seen

    with pytest.raises(Seen):
        site.run(examples, on_round=look)
    assert [report.error and report.error.code for report in reports] == ["round.closed", None]
    assert len(set(wire.keys)) == 2


def test_a_refused_contribution_gives_the_assignment_up(api, worker, submit, examples, home, wire):
    run, code = submit(simulated=0, rounds=1, round={"attempts": 1})
    wire.before.append(FerretError("request.too_large", "the body is larger than 10 bytes"))
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    assert state == "failed"
    assert [report.error and report.error.code for report in reports] == ["request.too_large"]
    (mine,) = run.contributions()
    assert mine.error is not None
    assert mine.error.code == "request.too_large"


def test_a_file_that_the_server_rebuilds_is_waited_for(api, worker, submit, examples, home, monkeypatch):
    run, code = submit(rounds=2)
    update = Run.update
    damaged = [FerretError("storage.corrupt", "it is being rebuilt: try again in a minute")]

    def once_damaged(run: Run, round: int, size: int | None = None) -> bytes:
        if damaged:
            raise damaged.pop()
        return update(run, round, size)

    monkeypatch.setattr(Run, "update", once_damaged)
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    assert state == "completed"
    told = [(report.round, report.error and report.error.code) for report in reports]
    assert told == [(1, None), (2, "storage.corrupt"), (2, None)]
    assert {contribution.state for contribution in run.contributions()} == {"accepted"}


def test_a_paused_experiment_is_waited_for(api, worker, submit, examples, home):
    run, code = submit(rounds=3)
    site = Participant.enrol(api.url, code, "site-a", home)
    resumed = threading.Timer(1, run.resume)

    def pause(report: RoundReport) -> None:
        if report.round == 1 and report.error is None:
            run.pause()
            resumed.start()

    assert site.run(examples, on_round=pause) == "completed"
    resumed.join()
    told = [event.type for event in run.past_events()]
    assert told.index("experiment.paused") < told.index("experiment.resumed") < told.index("experiment.completed")


def test_a_revoked_participant_ends_and_the_experiment_goes_on(api, worker, submit, examples, home):
    run, code = submit(rounds=3)

    def revoke(report: RoundReport) -> None:
        if report.round == 1:
            run.revoke("site-a", "left the study")

    with refused("participant.revoked", "left the study"):
        Participant.enrol(api.url, code, "site-a", home).run(examples, on_round=revoke)
    assert run.wait(timeout=60).state == "completed"
    (site,) = run.participants()
    assert (site.name, site.revoked_at is None) == ("site-a", False)
    accepted = [item.round for item in run.contributions() if item.participant == "site-a" and item.state == "accepted"]
    assert accepted == [1]


def test_what_goes_wrong_here_is_told_to_the_server(api, worker, submit, examples, home):
    broken = {"local": {"learning_rate": 1e30, "steps": 4, "batch_size": 4}}
    run, code = submit(of="ferret", options=broken, round={"attempts": 1})
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    assert state == "failed"
    assert reports[0].error is not None
    assert reports[0].error.code == "training.non_finite"
    (mine,) = [contribution for contribution in run.contributions() if contribution.participant == "site-a"]
    assert mine.state == "rejected"
    assert mine.error is not None
    assert mine.error.code == "training.non_finite"
    with pytest.raises(FerretError):
        run.wait()


def test_a_long_training_keeps_its_lease(api, worker, submit, examples, home, monkeypatch):
    """Twice as long as the lease of 2 seconds; the heartbeats carry it."""
    _, code = submit(rounds=1)
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
        while not any(contribution.state == "leased" for contribution in run.contributions()):
            time.sleep(0.05)
        run.cancel()

    canceller = threading.Thread(target=cancel_while_it_trains)
    canceller.start()
    state, reports = take_part(Participant.enrol(api.url, code, "site-a", home), examples)
    canceller.join()
    assert state == "cancelled"
    assert [report.error and report.error.code for report in reports] == ["lease.lost"]


def test_an_outage_is_given_up_after_as_long_as_was_asked(api, submit, examples, home):
    _, code = submit()
    site = Participant.enrol(api.url, code, "site-a", home)
    api.stop()
    try:
        with pytest.raises(FerretError) as raised:
            site.run(examples, give_up_after=0.1)
    finally:
        api.start()
    assert raised.value.code == "server.unreachable"
