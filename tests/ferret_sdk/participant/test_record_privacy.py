"""Sites whose records are protected by their own noise inside a secure sum, over HTTP."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any

import httpx
import pytest

from ferret_cli.experiment_tables import privacy_rows
from ferret_cli.ledger_replay import verified_records
from ferret_core.aggregation import noised_sum
from ferret_core.contribution import SealedContribution
from ferret_core.privacy.accounting import epsilon_of
from ferret_core.privacy.commitment import NONCE_BYTES
from ferret_core.privacy.mechanism import RecordMechanism, RecordPrivacy
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.states import ExperimentState
from ferret_core.storage import FileKind
from ferret_db.engine import rounds as round_engine
from ferret_db.engine.file_integrity import altered
from ferret_db.engine.garbage_collection import collect
from ferret_db.repositories import stored_files
from ferret_sdk.participant.site_terms import Privacy, Terms
from ferret_worker import aggregate as aggregate_task
from ferret_worker import repair
from ferret_worker.worker_state import WorkerState
from tests import in_process
from tests.ferret_sdk.participant.test_secure_sums import Sites
from tests.in_process import ADMIN
from tests.refusals import refused

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
LOCAL = {"optimizer": "normalized", "learning_rate": 0.3, "steps": 1, "batch_size": 1, "accumulation": 1}
OPTIONS = {"seeds": "shared", "allocation": "fixed", "coordinates": "float32", "K": 4_000, "refuse_noisy_rounds": False}
MECHANISMS = ("distributed", "central")
PRIVACY = {"unit": "field:patient", "epsilon": 30.0, "delta": 1e-3, "batch": 10, "records_least": 10}


@pytest.fixture
def records_spec(toy_spec: Any) -> Callable[..., ExperimentSpec]:
    def make(**privacy: Any) -> ExperimentSpec:
        options = {**OPTIONS, "local": {"precision": "float32", **LOCAL}}
        protected = {**PRIVACY, **privacy}
        secure = {"aggregation": "none" if protected.get("mechanism") == "central" else "masked"}
        return toy_spec("ferret", options=options, secure=secure, privacy=protected, rounds=2, participants={"edge": 3})

    return make


def patients(count: int) -> list[dict[str, Any]]:
    words = ("sun", "rain", "snow")
    return [
        {"instruction": "Repeat.", "input": words[n % 3], "output": words[n % 3], "patient": n // 2}
        for n in range(2 * count)
    ]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_three_sites_protect_their_patients_and_show_what_it_costs(
    api: Any, worker: Any, service: Any, records_spec: Any, tmp_path: Path, mechanism: str
) -> None:
    sites = Sites(api, service, records_spec(mechanism=mechanism), tmp_path)
    joined = [sites.enrol(name) for name in ("site-a", "site-b", "site-c")]
    for site in joined:
        sites.begin(site, patients(10), fields={"unit": "patient"})
    sites.join()
    assert sites.errors == {}
    assert set(sites.ended.values()) == {ExperimentState.COMPLETED}
    run = service.experiment(sites.run.id)
    noise = run.specification().privacy.noise_multiplier
    assert noise is not None
    expected = epsilon_of(1.0, noise, 2, 1e-3)
    assert expected <= 30
    for site in joined:
        assert site.record_privacy is not None
        assert site.record_privacy.epsilon == expected
    records = list(verified_records(run, sums=mechanism == "distributed"))
    assert [record.groups[0].releases for record in records] == [1, 1]
    assert run.metrics()["epsilon"][-1].value == expected
    shown = dict(privacy_rows(run.refresh().experiment))
    assert shown["protected"] == f"all examples with the same patient: ε = {expected:.3g} of 30 is spent, δ = 0.001"
    useful = RecordMechanism.of(run.specification(), 3).useful
    assert shown["last audit"].startswith("on a small model 1,000 canaries at ε = 3 proved")
    assert shown["useful coordinates"] == f"K* = {useful:,.0f}, K = {run.experiment.spec['algorithm']['K']:,}"
    with refused("extension.refused", "noise for 2 rounds", field="privacy.unit"):
        run.extend(1)
    with refused("privacy.meaningless", "useful coordinates", field="privacy.epsilon"):
        service.submit(records_spec(epsilon=0.1, mechanism=mechanism))


@pytest.mark.parametrize(
    ("rows", "fields", "code", "mechanism"),
    [
        (patients(9), {"unit": "patient"}, "privacy.too_few_records", "distributed"),
        (patients(9), {"unit": "patient"}, "privacy.too_few_records", "central"),
        (patients(10), None, "privacy.unit_missing", "distributed"),
    ],
)
def test_a_site_that_cannot_keep_the_promise_sends_nothing(
    api: Any,
    worker: Any,
    service: Any,
    records_spec: Any,
    tmp_path: Path,
    rows: Any,
    fields: Any,
    code: str,
    mechanism: str,
) -> None:
    sites = Sites(api, service, records_spec(mechanism=mechanism), tmp_path)
    for name in ("site-a", "site-b"):
        sites.begin(sites.enrol(name), patients(10), fields={"unit": "patient"})
    bad = sites.enrol("site-c")
    with refused(code):
        bad.run(rows, fields=fields)
    assert bad.record_privacy is None
    sites.run.cancel()
    sites.join()


def test_a_site_with_its_own_noise_takes_no_part(
    api: Any, worker: Any, service: Any, records_spec: Any, tmp_path: Path
) -> None:
    own = Terms(privacy=Privacy(clip=1.0, noise_multiplier=8.0, epsilon=2.0, delta=1e-5))
    sites = Sites(api, service, records_spec(), tmp_path)
    for name in ("site-a", "site-b"):
        sites.begin(sites.enrol(name), patients(10), fields={"unit": "patient"})
    with refused("terms.refused", "this site adds its own", field="privacy.unit"):
        sites.enrol("site-c", terms=own).run(patients(10), fields={"unit": "patient"})
    sites.run.cancel()
    sites.join()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_killed_release_is_spent(
    api: Any,
    worker: Any,
    service: Any,
    records_spec: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mechanism: str,
) -> None:
    """The account has the release when the first unit is drawn, and the server receives the failure without text."""
    sites = Sites(api, service, records_spec(mechanism=mechanism), tmp_path)
    joined = [sites.enrol(name) for name in ("site-a", "site-b", "site-c")]
    spent = list[float]()

    def killed(self: RecordPrivacy) -> None:
        spent.extend(site.record_privacy.epsilon for site in joined if site.record_privacy is not None)
        raise OSError("this process was killed, and its data are secret")

    monkeypatch.setattr(RecordPrivacy, "draw", killed)
    for site in joined:
        sites.begin(site, patients(10), fields={"unit": "patient"})
    sites.join()
    assert len(sites.errors) == 3
    noise = service.experiment(sites.run.id).specification().privacy.noise_multiplier
    assert spent
    assert set(spent) == {epsilon_of(1.0, noise, 1, 1e-3)}


class Killed(BaseException):
    """The end of a process."""


def test_central_noise_is_drawn_once_however_often_the_aggregation_is_killed(
    api: Any, worker: Any, service: Any, records_spec: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed before and after the noise is stored, and at every later step; then all updates are lost."""
    points = ["kept", "aggregate.computed", "aggregate.stored", "aggregate.written", "aggregate.committed"]
    left, drawn, used = [*points], list[bytes](), list[bytes]()
    draw, mean, keep = aggregate_task.noised_sum, aggregate_task.noised_mean, round_engine.keep_noised_sum

    def die(name: str) -> None:
        if left and name == left[0]:
            left.pop(0)
            raise Killed

    def keep_or_die(*about: Any, **named: Any) -> bytes:
        die("kept")
        return keep(*about, **named)

    def noised_sum(*about: Any) -> bytes:
        drawn.append(draw(*about))
        return drawn[-1]

    def noised_mean(*about: Any) -> Any:
        used.append(about[3])
        return mean(*about)

    def aggregate(context: WorkerState, round_id: str) -> None:
        with suppress(Killed):
            honest(context, round_id)

    honest = aggregate_task.aggregate
    monkeypatch.setattr(in_process, "aggregate", aggregate)
    monkeypatch.setattr(aggregate_task, "failpoint", die)
    monkeypatch.setattr(aggregate_task, "noised_sum", noised_sum)
    monkeypatch.setattr(aggregate_task, "noised_mean", noised_mean)
    monkeypatch.setattr(round_engine, "keep_noised_sum", keep_or_die)
    sites = Sites(api, service, records_spec(mechanism="central"), tmp_path)
    joined = [sites.enrol(name) for name in ("site-a", "site-b", "site-c")]
    for site in joined:
        sites.begin(site, patients(10), fields={"unit": "patient"})
    sites.join()
    assert sites.errors == {}
    assert left == []
    assert len(drawn) == 3, "the first draw of round 1 was lost before anything was made of it"
    assert drawn[0] != drawn[1]
    assert used[:4] == 4 * [drawn[1]]
    assert {*used[4:]} == {drawn[2]}
    noise = service.experiment(sites.run.id).specification().privacy.noise_multiplier
    assert [site.record_privacy and site.record_privacy.epsilon for site in joined] == 3 * [
        epsilon_of(1, noise, 2, 1e-3)
    ]

    context = worker.new_context()
    with worker.database.read() as s:
        files = list(stored_files.of_all(s, sites.run.id))
    assert FileKind.CONTRIBUTION not in {file.kind for file in files}, "they end with their round"
    lost = [context.storage.path(file.location) for file in files if file.kind == FileKind.UPDATE]
    before = [path.read_bytes() for path in lost]
    for path in lost:
        path.unlink()
    repair.repair(context, sites.run.id)
    assert [path.read_bytes() for path in lost] == before
    with worker.database.read() as s:
        assert list(altered(s, context.storage, sites.run.id)) == []
    collected = collect(worker.database, context.storage, grace=0)
    assert collected is not None
    assert collected.files >= 6
    assert not [file for file in context.storage.list() if file.location.startswith(FileKind.CONTRIBUTION)]


def test_nobody_reads_a_contribution_to_central_noise_or_a_digest_of_it(
    api: Any, worker: Any, service: Any, records_spec: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every route of the experiment, with the tokens of the operator and of another site."""
    secret, seal = dict[str, set[bytes]](), noised_sum.seal_committed

    def seal_committed(replica: Any, task: RoundTask, sealed: SealedContribution) -> SealedContribution:
        sent = seal(replica, task, sealed)
        nonce, packed = sent.blob[:NONCE_BYTES], sent.blob[NONCE_BYTES:]
        plain = {nonce, packed[:64], packed[-64:], sealed.contribution.arrays["coordinates"].tobytes()[:64]}
        digests = {
            digest_bytes(packed),
            sealed.digest,
            digest_bytes(sealed.contribution.arrays["coordinates"].tobytes()),
        }
        encoded = {text for each in plain for text in (each.hex().encode(), b64encode(each)[:-4])}
        secret.setdefault(task.participant, set()).update(plain, encoded, (digest.encode() for digest in digests))
        return sent

    monkeypatch.setattr(noised_sum, "seal_committed", seal_committed)
    sites = Sites(api, service, records_spec(mechanism="central"), tmp_path)
    joined = [sites.enrol(name) for name in ("site-a", "site-b", "site-c")]
    while sites.run.refresh().experiment.digest is None:
        sleep(0.05)
    preview = joined[0].preview(patients(10), fields={"unit": "patient"})
    body = [part for part in preview.parts if part.place != "header"]
    assert [part.name for part in body] == ["nonce", "coordinates"]
    assert preview.digest is None, "the nonce makes another one each time"
    assert joined[0].record_privacy is None, "a preview costs nothing"
    for site in joined:
        sites.begin(site, patients(10), fields={"unit": "patient"})
    sites.join()
    assert sites.errors == {}
    hidden = {each for found in secret.values() for each in found}
    places = {"experiment_id": sites.run.id, "number": "1", "round": "1", "participant": "site-a"}
    paths = json.loads(Path("openapi.json").read_text(encoding="utf-8"))["paths"]
    routes = [path for path, methods in paths.items() if "get" in methods and "{experiment_id}" in path]
    routes = [path.format(**places) for path in routes if not {"stream", "{artifact_id}"} & {*path.split("/")}]
    read = 0
    for token in (ADMIN, joined[1].member.token):
        for route in routes:
            answer = httpx.get(f"{api.url}{route}", headers={"Authorization": f"Bearer {token}"})
            read += answer.is_success
            assert not [each for each in hidden if each in answer.content], route
            if route.endswith("/masked/site-a"):
                assert answer.json()["code"] == "receipt.not_found"
    assert read > len(routes)
    listed = httpx.get(
        f"{api.url}/api/v1/experiments/{sites.run.id}/contributions", headers={"Authorization": f"Bearer {ADMIN}"}
    )
    assert {each["size"] for each in listed.json()["items"]} == {preview.size} == {sum(part.size for part in body)}
    for each in listed.json()["items"]:
        assert (each["metrics"], each["examples"], each["factor"], each["seconds"]) == ({}, 1, None, 0.0)
    receipt = sites.run.refresh().receipt(1, "site-a").verified()
    assert receipt.public_key is not None
    with refused("request.invalid", "noise", field="--sums"):
        list(verified_records(sites.run, sums=True))
