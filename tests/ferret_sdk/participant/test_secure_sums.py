"""Secure sums over HTTP: real participants, the real API, and a simulation that must give the same model."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import pytest

import ferret_core.simulate as simulate_module
from ferret_cli.experiment_tables import privacy_rows, sum_rows
from ferret_cli.ledger_replay import verified_records
from ferret_core.algorithms.base import Client
from ferret_core.client import local_round
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import Lease
from ferret_core.protocol.signatures import public_key
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.states import ExperimentState
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.secure import member, shamir
from ferret_core.secure.member import STOCK
from ferret_core.secure.prekeys import PREKEY_BYTES
from ferret_core.secure.roster import Roster
from ferret_core.secure.shamir import SHARE_BYTES
from ferret_core.secure.shares import SIGNATURE_BYTES, deal_size, message_bytes
from ferret_core.simulate import SimulationResult, simulate
from ferret_core.storage import FileKind
from ferret_db.engine.file_integrity import altered
from ferret_db.repositories import stored_files
from ferret_sdk import Participant
from ferret_sdk.http.transport import read_model
from ferret_sdk.participant.egress_log import SentLog
from ferret_sdk.participant.invitation import inspect
from ferret_sdk.participant.local_training import LocalTraining
from ferret_sdk.participant.membership import site_key
from ferret_sdk.participant.paths import ParticipantPaths
from ferret_sdk.participant.site_terms import Secure, Terms
from ferret_sdk.service.progress import RoundReport
from ferret_sdk.service.run import Run
from ferret_worker import aggregate as aggregate_task
from ferret_worker import repair
from ferret_worker.worker_state import WorkerState
from tests import in_process
from tests.in_process import PART_BYTES
from tests.refusals import refused

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(180)]
SIGNS = {"seeds": "shared", "allocation": "fixed", "K": 4_000, "refuse_noisy_rounds": False}


class Sites:
    """Real participants with the names, and so the seeds and examples, of simulated clients."""

    def __init__(self, api: Any, service: Any, spec: ExperimentSpec, folder: Path) -> None:
        self.run: Run = service.submit(spec)
        self._url, self._folder = api.url, folder
        self._service = service
        self.reports: dict[str, list[RoundReport]] = {}
        self.ended: dict[str, ExperimentState] = {}
        self.errors: dict[str, BaseException] = {}
        self._threads: dict[str, threading.Thread] = {}

    def enrol(self, name: str, **options: Any) -> Participant:
        code = self.run.create_code().code
        return Participant.enrol(self._url, code, name, self._folder / name, **options)

    def begin(self, site: Participant, examples: Any, **options: Any) -> None:
        name = site.member.name
        reports = self.reports.setdefault(name, [])

        def run() -> None:
            try:
                self.ended[name] = site.run(examples, on_round=reports.append, **options)
            except BaseException as error:
                self.errors[name] = error

        self._threads[name] = threading.Thread(target=run)
        self._threads[name].start()

    def join(self) -> None:
        for thread in self._threads.values():
            thread.join(120)
            assert not thread.is_alive(), self.errors


@pytest.fixture
def masked_spec(toy_spec: Any) -> Callable[..., ExperimentSpec]:
    def make(algorithm: str = "ferret", **changes: Any) -> ExperimentSpec:
        adam = {"optimizer": "adam", "learning_rate": 1e-2, "steps": 4, "batch_size": 4, "accumulation": 1}
        options = {**(SIGNS if algorithm == "ferret" else {}), "local": adam}
        return toy_spec(algorithm, options=options, **{"secure": {"aggregation": "masked"}, **changes})

    return make


@pytest.fixture
def simulated(masked_spec: Any) -> Callable[..., tuple[SimulationResult, FederatedData]]:
    """``simulated(count)``: a simulation of two rounds, and its data."""

    def make(
        count: int,
        drop: Callable[[RoundTask], None] = lambda task: None,
        algorithm: str = "ferret",
        fraction: float = 1.0,
        **changes: Any,
    ) -> tuple[SimulationResult, FederatedData]:
        found = list[FederatedData]()

        def take_part(replica: Replica, client: Client) -> LocalRound:
            drop(client.task)
            return contribute(replica, client)

        def load(*arguments: Any) -> FederatedData:
            found.append(FederatedData(*arguments))
            return found[0]

        sampled = {"simulated": count, "fraction": fraction}
        spec = masked_spec(algorithm, rounds=2, participants=sampled, round={"quorum": 0.5}, **changes)
        return simulate(spec, load=load, participate=take_part), found[0]

    return make


class Killed(BaseException):
    """The end of a process."""


def test_groups_are_summed_for_themselves_and_kills_and_lost_files_change_nothing(
    api: Any, worker: Any, service: Any, masked_spec: Any, simulated: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """Six sites in two groups. The aggregation is killed at each of its steps, once after the API was restarted; then
    all updates and checkpoints are lost."""
    grouped = {"secure": {"aggregation": "masked", "group": 3}}
    expected, data = simulated(6, **grouped)
    points = ["aggregate.begun", "aggregate.computed", "aggregate.stored", "aggregate.written", "aggregate.committed"]
    left, killed, honest = [*points], list[str](), aggregate_task.aggregate

    def aggregate(context: WorkerState, round_id: str) -> None:
        def die(name: str) -> None:
            if left and name == left[0]:
                killed.append(left.pop(0))
                raise Killed

        monkeypatch.setattr(aggregate_task, "failpoint", die)
        try:
            honest(context, round_id)
        except Killed:
            if len(killed) == 1:
                api.stop()
                api.start()

    monkeypatch.setattr(in_process, "aggregate", aggregate)
    sites = Sites(api, service, masked_spec(rounds=2, participants={"simulated": 0, "edge": 6}, **grouped), tmp_path)
    for number in range(1, 7):
        site = sites.enrol(f"client-{number:03}")
        sites.begin(site, rows(data, site.member.name))
    sites.join()
    assert not sites.errors
    assert killed == points
    run = sites.run.refresh()
    assert run.experiment.digest == expected.digest
    records = list(verified_records(run, sums=True))
    assert [[len(group.survivors) for group in record.groups] for record in records] == [[3, 3], [3, 3]]

    context = worker.new_context()
    with worker.database.read() as s:
        made = [file for file in stored_files.of_all(s, run.id) if file.kind in {FileKind.UPDATE, FileKind.CHECKPOINT}]
        assert list(altered(s, context.storage, run.id)) == []
    before = {file.location: context.storage.path(file.location).read_bytes() for file in made}
    for location in before:
        context.storage.path(location).unlink()
    repair.repair(context, run.id)
    assert {location: context.storage.path(location).read_bytes() for location in before} == before


def test_a_sum_that_a_dealer_spoilt_is_repeated_with_fresh_keys(
    api: Any, worker: Any, service: Any, masked_spec: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """The dealer is named. Two others alone cannot sum without it, so it is asked again."""
    dealing, split, deals = threading.local(), shamir.split, member.make_deal

    def make_deal(roster: Roster, dealer: str, *secrets: Any) -> Any:
        dealing.wrongly = (roster.origin.attempt, dealer) == (1, "client-002")
        return deals(roster, dealer, *secrets)

    def split_wrongly(*arguments: Any) -> list[bytes]:
        shares = split(*arguments)
        return [*shares[:-1], shares[0]] if getattr(dealing, "wrongly", False) else shares

    monkeypatch.setattr(member, "make_deal", make_deal)
    monkeypatch.setattr(shamir, "split", split_wrongly)
    sites = Sites(api, service, masked_spec(rounds=1, participants={"simulated": 0, "edge": 3}), tmp_path)
    examples = [{"instruction": "copy", "input": text, "output": text} for text in ("ab", "ba", "cd", "dc")]
    joined = [sites.enrol(f"client-{number:03}") for number in range(1, 4)]
    while sites.run.refresh().experiment.digest is None:
        sleep(0.05)
    preview = joined[0].preview(examples)
    for site in joined:
        sites.begin(site, examples)
    sites.join()
    assert not sites.errors
    assert {*sites.ended.values()} == {ExperimentState.COMPLETED}
    body = [part for part in preview.parts if part.place != "header"]
    assert {part.name for part in body} == {"masked"}, "no metadata, and no array that the server could read"
    assert [preview.size, sum(part.size for part in body)] == [sites.reports["client-001"][-1].size] * 2
    assert (preview.digest, preview.sum_bytes) == (None, message_bytes(3))
    run = sites.run.refresh()
    (abandoned,) = [event.data for event in run.past_events() if event.type == "round.abandoned"]
    assert (abandoned["code"], "client-002" in abandoned["detail"]) == ("secure.shares_invalid", True)
    (transcript,) = run.transcripts(1)
    assert transcript.roster.origin.attempt == 2
    assert transcript.survivors == ("client-001", "client-002", "client-003")
    assert len(list(verified_records(run, sums=True))) == 1


def test_an_undone_sum_is_repeated_with_the_same_members_here_and_in_a_simulation(
    api: Any, worker: Any, service: Any, masked_spec: Any, simulated: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """Three of five sites are drawn for round 1, which breaks the model once. Without the repetition the next attempt
    would draw others."""

    def break_once(module: Any) -> None:
        left, honest = [1], module.aggregate_round

        def aggregate_round(replica: Replica, *rest: Any, **named: Any) -> Any:
            if replica.round == 0 and left:
                left.pop()
                raise FerretError("round.diverged", "as the test has it")
            return honest(replica, *rest, **named)

        monkeypatch.setattr(module, "aggregate_round", aggregate_round)

    break_once(simulate_module)
    break_once(aggregate_task)
    expected, data = simulated(5, fraction=0.6)
    sampled = {"simulated": 0, "edge": 5, "fraction": 0.6}
    sites = Sites(api, service, masked_spec(rounds=2, participants=sampled), tmp_path)
    for number in range(1, 6):
        site = sites.enrol(f"client-{number:03}")
        sites.begin(site, rows(data, site.member.name))
    sites.join()
    assert not sites.errors
    run = sites.run.refresh()
    attempts = [event.data["contributors"] for event in run.past_events() if event.type == "round.rolled_back"]
    first = expected.ledger[0].groups[0].survivors
    spec = run.specification()
    drawn = [sampling.sample(spec, 1, sampling.client_names(5), attempt) for attempt in (1, 2)]
    assert {*drawn[0]} == {*first} != {*drawn[1]}
    assert [sorted(names) for names in attempts] == [sorted(first)]
    records = [read_model(LedgerRecord, entry.record) for entry in run.ledger()]
    assert [each.groups[0].survivors for each in records] == [each.groups[0].survivors for each in expected.ledger]
    assert run.experiment.digest == expected.digest
    assert run.transcripts(1)[0].roster.origin.attempt == 2


def rows(data: FederatedData, name: str) -> list[dict[str, str]]:
    return [
        {"instruction": each.instruction, "input": each.input, "output": each.output} for each in data.examples(name)
    ]


@pytest.mark.parametrize("algorithm", ["ferret", "fedavg"])
def test_the_service_sums_to_the_model_of_a_simulation_without_those_that_drop_out(
    api: Any,
    worker: Any,
    service: Any,
    masked_spec: Any,
    simulated: Any,
    tmp_path: Path,
    monkeypatch: Any,
    algorithm: str,
) -> None:
    """Five sites: one drops out before its deal in round 1, another after its deal in round 2. Whole updates are sent
    in parts."""
    dropping = {(1, "client-005"), (2, "client-004")}

    def drop(task: RoundTask) -> None:
        if (task.round, task.participant) in dropping:
            raise FerretError("training.non_finite", "as the test has it")

    def drop_before_dealing(self: LocalTraining, lease: Lease) -> None:
        if lease.task.round == 1:
            drop(lease.task)
        deal(self, lease)

    def drop_after_dealing(replica: Replica, client: Client) -> LocalRound:
        drop(client.task)
        return honest(replica, client)

    expected, data = simulated(5, drop, algorithm)
    deal, honest = LocalTraining.deal, local_round.contribute
    monkeypatch.setattr(LocalTraining, "deal", drop_before_dealing)
    monkeypatch.setattr(local_round, "contribute", drop_after_dealing)
    spec = masked_spec(algorithm, rounds=2, participants={"simulated": 0, "edge": 5})
    sites = Sites(api, service, spec, tmp_path)
    peers = [public_key(site_key(tmp_path / f"client-00{number}")) for number in (1, 2)]
    pinned = Terms(secure=Secure(require=True, peers=peers, peers_required=1))
    assert inspect(api.url, sites.run.create_code().code, tmp_path / "invited").participants == 4
    members = [sites.enrol(f"client-00{number}", terms=pinned if number == 3 else None) for number in range(1, 6)]
    for site in members:
        sites.begin(site, rows(data, site.member.name))
    sites.join()
    assert not sites.errors
    assert {*sites.ended.values()} == {ExperimentState.COMPLETED}
    run = sites.run.refresh()
    assert run.experiment.digest == expected.digest

    records = [read_model(LedgerRecord, entry.record) for entry in run.ledger()]
    assert [[*each.groups[0].survivors] for each in records] == [
        ["client-001", "client-002", "client-003", "client-004"],
        ["client-001", "client-002", "client-003", "client-005"],
    ]
    assert [len(each.groups[0].members) for each in records] == [5, 5]
    shown = [
        [(each.number, group.survivors, group.members, group.dropped) for group in each.groups] for each in run.rounds()
    ]
    assert shown == [[(1, 4, 5, ["client-005"])], [(2, 4, 5, ["client-004"])]]
    assert [row[2:] for row in sum_rows(list(run.rounds()))] == [
        ("4/5", "client-005", None),
        ("4/5", "client-004", None),
    ]
    read = "read sums of the contributions of at least 3 participants, and none on its own"
    assert next(privacy_rows(run.experiment)) == ("The server and the people who run it", read)
    assert [record.hash for record in verified_records(run, sums=True)] == [record.hash for record in records]
    for name in records[1].groups[0].survivors:
        assert run.receipt(2, name).verified().participant == name
    for site in members:
        places = ParticipantPaths(tmp_path / site.member.name, site.member.experiment, site.member.participant)
        assert not places.secure.exists(), "keys and shares are deleted with the end"

    (transcript,) = run.transcripts(1)
    sizes, vectors = dict[str, set[int]](), dict[str, int]()
    for request in SentLog(tmp_path / "client-001").read():
        message = request.url.rpartition("/")[2]
        if message == "contribution":
            vectors[request.url] = vectors.get(request.url, 0) + request.size
        elif request.method == "PUT":
            sizes.setdefault(message, set()).add(request.size)
    assert sizes.pop("unmask", set()) <= {4 * SHARE_BYTES, 5 * SHARE_BYTES}, "one for each dealer, if they are needed"
    assert sizes == {
        "prekeys": {STOCK * PREKEY_BYTES},
        "shares": {deal_size(5)},
        "survivors": {SIGNATURE_BYTES},
    }
    size = transcript.roster.layout.size
    assert [*vectors.values()] == [size, size]
    assert (size > PART_BYTES) is (algorithm == "fedavg")

    def download_damaged(self: Run, round: int, participant: str, target: Path, **expected: Any) -> None:
        download(self, round, participant, target, **expected)
        target.write_bytes(bytes([target.read_bytes()[0] ^ 1]) + target.read_bytes()[1:])

    download = Run.download_masked
    monkeypatch.setattr(Run, "download_masked", download_damaged)
    with refused("ledger.broken", "secure sum"):
        list(verified_records(run, sums=True))
