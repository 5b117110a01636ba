"""A participant under its site's terms, against the real API."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from ferret_core.catalog import ResolvedExperiment
from ferret_core.contribution import SealedContribution
from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.errors import PROBLEMS, FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import Contribution, ContributionMeta
from ferret_core.training.privacy import ReleasePolicy
from ferret_sdk import Participant
from ferret_sdk.http.safe_paths import resolve_inside
from ferret_sdk.participant import site_terms, terms_enforcement
from ferret_sdk.participant.site_terms import Terms, end_of_quiet_hours
from ferret_sdk.participant.terms_enforcement import Enforcement
from ferret_sdk.participant.usage_counter import Usage, UsageTotals
from ferret_sdk.service.progress import Progress, RoundReport, Stage
from tests.refusals import refused

pytestmark = pytest.mark.timeout(90)

NOON = datetime(2026, 11, 23, 12)
SPEC: dict[str, Any] = {
    "name": "toy",
    "rounds": 3,
    "model": {"source": "hub/tiny", "revision": "v1"},
    "dataset": {"name": "jsonl", "train": "x"},
    "participants": {"edge": 4},
}
SHAPES = {"weight": (1000,)}
MODEL = torch.nn.Sequential(torch.nn.Linear(1, 1))
A, B = "a" * 64, "b" * 64


def terms_of(**tables: Any) -> Terms:
    return Terms.model_validate(tables)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The site's clock; sleeping moves it on."""
    now = [NOON]

    def slept(seconds: float) -> None:
        now[0] = datetime.fromtimestamp(now[0].timestamp() + seconds)

    monkeypatch.setattr(site_terms, "local_now", lambda: now[0])
    monkeypatch.setattr(terms_enforcement, "sleep", slept)
    return now


@pytest.fixture
def held(tmp_path: Path):
    def make(**tables: Any) -> Enforcement:
        return Enforcement(terms_of(**tables), Usage(tmp_path / "usage.json"), "site-a", tmp_path)

    return make


@pytest.fixture
def spec(toy_spec):
    """Ferret's, as a participant follows it: four real participants, a quorum of half."""
    return toy_spec("ferret", participants={"edge": 4})


def task(population: int = 4) -> RoundTask:
    seeds = {"data_seed": 1, "seed": 2, "round_seed": 3}
    return RoundTask(
        experiment="exp_0123456789abcdef",
        round=2,
        rounds=3,
        participant="site-a",
        base_digest=A,
        population=population,
        **seeds,
    )


def test_a_model_is_allowed_by_name_revision_and_digest(held, spec) -> None:
    source = spec.model.source
    for model in ({"source": source}, {"source": source, "digest": A}):
        held(allow={"models": [{"source": "other"}, model]}).require_experiment(spec, A)
    wrong: list[dict[str, str]] = [
        {"source": "other"},
        {"source": source, "digest": B},
        {"source": source, "revision": "v2"},
    ]
    for model in wrong:
        with pytest.raises(FerretError) as raised:
            held(allow={"models": [model]}).require_experiment(spec, A)
        assert (raised.value.code, raised.value.errors[0].field) == ("terms.refused", "model.source")


def test_a_chat_template_that_comes_with_the_model_needs_the_models_digest(held, toy_spec) -> None:
    """``auto`` is refused once the loaded model has made it ``chat``."""
    auto, chat = (toy_spec(participants={"edge": 4}, prompt={"template": name}) for name in ("auto", "chat"))
    for digest, allowed in ((None, False), (A, True)):
        site = held(allow={"models": [{"source": auto.model.source, "digest": digest}]})
        site.require_experiment(auto, A)
        with nullcontext() if allowed else refused("terms.refused", "allow its digest aaa", field="prompt.template"):
            site.require_experiment(chat, A)
        site.require_experiment(auto, A)
        with nullcontext() if allowed else refused("terms.refused", "allow its digest aaa", field="prompt.template"):
            site.require_round(task(), ResolvedExperiment.of(chat), SHAPES, 60)


@pytest.mark.parametrize(
    ("tables", "code", "field"),
    [
        ({"limits": {"steps": 3}}, "terms.refused", "algorithm.local.steps"),
        ({"limits": {"memory_gb": 1e-5}}, "terms.refused", "memory"),
        ({"limits": {"memory_gb": 1e-3}}, "terms.refused", "memory"),  # this process has more
        ({"limits": {"bytes_per_round": 10}}, "terms.refused", "contribution"),
        ({"limits": {"bytes": 10}}, "terms.limit_reached", "bytes"),
        ({"limits": {"sequences": 7}}, "terms.refused", "sequences"),
        ({"limits": {"share": 0.2}}, "terms.refused", "share"),
        ({"allow": {"participants": 3}}, "terms.round_not_allowed", "participants"),
        ({"allow": {"examples": 61}}, "terms.refused", "examples"),
    ],
)
def test_training_does_not_begin(held, spec, tables: dict[str, Any], code: str, field: str) -> None:
    with pytest.raises(FerretError) as raised:
        held(**tables).require_round(task(), ResolvedExperiment.of(spec), SHAPES, 60)
    assert (raised.value.code, raised.value.errors[0].field) == (code, field)


@pytest.mark.parametrize(
    ("algorithm", "options", "allowed"),
    [
        ("ferret", {"K": 1000, "bytes_per_round": None, "coordinates": "float32"}, False),
        ("ferret", {"K": 100, "bytes_per_round": None, "coordinates": "float32"}, True),
        ("fedavg", {}, False),
        ("topk", {}, True),
    ],
)
def test_a_site_that_sends_no_block_whole_refuses_every_exact_update(
    held, toy_spec, algorithm, options, allowed
) -> None:
    experiment = ResolvedExperiment.of(toy_spec(algorithm, options=options, participants={"edge": 4}))
    with nullcontext() if allowed else refused("terms.refused", "sends no block whole", field="whole_blocks"):
        held(allow={"whole_blocks": False}).require_round(task(), experiment, SHAPES, 60)


def test_a_finished_contribution_holds_no_block_whole_that_was_not_expected(held, toy_spec) -> None:
    """The update of one block alone, which then gets all coordinates."""
    shapes = {"moved": (100,), "still": (900,)}
    options = {"K": 100, "bytes_per_round": None, "coordinates": "float32", "whole_up_to": 0, "allocation": "norm"}
    experiment = ResolvedExperiment.of(toy_spec("ferret", options=options, participants={"edge": 4}))
    site = held(allow={"whole_blocks": False})
    site.require_round(task(), experiment, shapes, 60)
    meta = ContributionMeta(
        format=1,
        experiment="exp_0123456789abcdef",
        round=2,
        participant="site-a",
        algorithm="ferret",
        base_digest=A,
        examples=60,
        seed=2,
        K=(100, 0),
    )
    sealed = SealedContribution((b"",), A, Contribution(meta, {}))
    with refused("terms.refused", "sends no block whole", field="whole_blocks"):
        site.require_contribution(sealed, experiment, shapes, ReleasePolicy())


def test_training_within_the_terms_begins_and_is_counted(held, spec, monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(terms_enforcement, "monotonic", lambda: now[0])
    limits = {"steps": 4, "memory_gb": 1000, "bytes_per_round": 20_000, "bytes": 20_000, "hours": 1, "hours_per_day": 1}
    site = held(limits=limits, allow={"participants": 2})
    site.require_round(task(), ResolvedExperiment.of(spec), SHAPES, 60)
    with site.training(MODEL):
        now[0] = 90
        site.check_step()
        assert site.usage.read().seconds == 90  # a process that is killed now has lost nothing
        now[0] = 100
    assert site.usage.read() == UsageTotals(seconds=100, day=site_terms.local_now().date(), seconds_today=100)
    with site.training(MODEL):
        now[0] = 3600
        with pytest.raises(FerretError) as raised:
            MODEL(torch.zeros(1, 1))  # in mid-step
    assert raised.value.code == "terms.limit_reached"


def test_simulated_clients_are_no_company(held, toy_spec) -> None:
    mixed = ResolvedExperiment.of(toy_spec(participants={"edge": 4, "simulated": 6}, round={"quorum": 1}))
    held(allow={"participants": 4}).require_round(task(10), mixed, SHAPES, 60)
    with pytest.raises(FerretError):
        held(allow={"participants": 5}).require_round(task(10), mixed, SHAPES, 60)


def test_the_ledger_shows_whether_there_was_company(held, toy_spec) -> None:
    site = held(allow={"participants": 2})
    site.require_experiment(toy_spec(participants={"edge": 2, "simulated": 2}), A)

    def record(*names: str) -> LedgerRecord:
        digests = {"spec": A, "base_digest": A, "digest": B, "update": A, "previous": ""}
        contributions = tuple((name, A) for name in names)
        nothing = {"clipped": (), "refused": (), "signatures": (), "halvings": 0}
        members = {"version": 1, "experiment": "exp_0123456789abcdef", "round": 1, **digests, **nothing}
        return LedgerRecord(contributions=contributions, **members)

    site.follow(record("site-a", "site-b"))
    site.follow(record("client-001", "site-b"))  # without this site
    with pytest.raises(FerretError) as raised:
        site.follow(record("client-001", "client-002", "site-a"))
    assert (raised.value.code, raised.value.errors[0].value) == ("terms.refused", 1)


def test_quiet_hours_are_waited_for_and_interrupt_training(held, spec, clock) -> None:
    site = held(allow={"quiet_hours": ["07:00-14:00"]})
    told: list[Progress] = []
    site.wait(told.append)
    assert clock[0].hour == 14
    assert (told[0].stage, told[0].total) == (Stage.REST, 7200)
    with site.training(MODEL):
        clock[0] = NOON
        with pytest.raises(FerretError) as raised:
            site.check_step()
    assert raised.value.code == "terms.quiet_hours"
    with pytest.raises(FerretError) as raised:
        site.require_sending(100, private=False)
    assert (raised.value.code, site.usage.read().bytes) == ("terms.quiet_hours", 0)


def test_the_hours_of_a_day_begin_anew_at_midnight(held, clock) -> None:
    site = held(limits={"hours_per_day": 1})
    site.usage.trained(3600)
    site.wait(lambda progress: None)
    assert (clock[0].day, clock[0].hour) == (24, 0)
    assert (site.usage.today(), site.usage.read().seconds) == (0, 3600)


def test_what_was_spent_is_not_forgotten_with_a_damaged_file(held, tmp_path) -> None:
    (tmp_path / "usage.json").write_text("{")
    with refused("terms.invalid", str(tmp_path / "usage.json")):
        held().require_sending(10, private=False)


@pytest.fixture
def join(api, service, toy_spec, toy_data, tmp_path):
    """Joins a new experiment as its only real participant, under ``terms``."""

    def make(rounds: int = 1, **tables: Any):
        run = service.submit(toy_spec(participants={"simulated": 1, "edge": 1}, rounds=rounds))
        code = run.create_code().code
        return run, Participant.enrol(api.url, code, "site-a", tmp_path / "site", terms=terms_of(**tables))

    return make


def test_an_algorithm_that_is_not_allowed_is_refused_before_the_download_and_the_server_is_told(
    api, worker, join, toy_data, tmp_path
) -> None:
    run, site = join(allow={"algorithms": ["fedavg", "fedit"]})
    with refused("terms.refused"):
        site.run(toy_data[0])
    assert not list(tmp_path.glob("site/participants/*/base"))
    (mine,) = [found for found in run.contributions() if found.participant == "site-a"]
    assert (mine.state, mine.error.code) == ("rejected", "terms.refused")
    assert mine.error.detail == "algorithm.name = 'toy': this site allows fedavg, fedit"


def test_bytes_in_all_end_the_participation_after_the_rounds_they_last_for(api, worker, join, toy_data) -> None:
    reports: list[RoundReport] = []
    _, site = join()
    site.run(toy_data[0], on_round=reports.append)
    size = reports.pop().size
    _, site = join(rounds=3, limits={"bytes": 2 * size + 100, "bytes_per_round": size + 100})
    with refused("terms.limit_reached"):
        site.run(toy_data[0], on_round=reports.append)
    assert [report.round for report in reports] == [1, 2]


def test_a_contribution_that_is_sent_again_counts_once(api, worker, join, toy_data, monkeypatch) -> None:
    reports: list[RoundReport] = []
    _, site = join()
    site.run(toy_data[0], on_round=reports.append)
    size = reports.pop().size
    _, site = join(limits={"bytes": size + 100})
    with monkeypatch.context() as patch:
        patch.setattr(site._sending, "send", lambda upload: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            site.run(toy_data[0])
    assert site.run(toy_data[0]) == "completed"


def test_a_failure_names_no_file_of_this_machine(held, tmp_path) -> None:
    inside = FerretError.of_field("model.invalid", "base", "/srv/patients/model", "holds no weights")
    assert "/srv" not in held().reported(inside, used_examples=False).detail
    (tmp_path / "usage.json").write_text("{")
    (tmp_path / "outside").symlink_to("/")
    for code, fails in (
        ("terms.invalid", lambda: Usage(tmp_path / "usage.json").read()),
        ("server.unexpected", lambda: resolve_inside(tmp_path, tmp_path / "outside")),
    ):
        with refused(code, str(tmp_path)) as caught:
            fails()
        failure = held().reported(caught.value, used_examples=False)
        assert (failure.code, failure.detail) == (code, PROBLEMS[code].title)
    refusal = FerretError.of_field("terms.refused", "algorithm.name", "fedavg", "this site allows ferret")
    assert held().reported(refusal, used_examples=False).detail == refusal.detail


def test_what_was_made_before_quiet_hours_is_sent_after_them(
    api, worker, join, toy_data, clock, monkeypatch, tmp_path
) -> None:
    run, site = join(allow={"quiet_hours": ["14:00-15:00"]})
    keep = site._spool.keep
    made: list[str] = []

    def then_quiet(upload: Any, pieces: Any) -> None:
        keep(upload, pieces)
        made.append(upload.digest)
        clock[0] = datetime(2026, 11, 23, 14, 30)

    monkeypatch.setattr(site._spool, "keep", then_quiet)
    reports: list[RoundReport] = []
    assert site.run(toy_data[0], on_round=reports.append) == "completed"
    assert [report.error and report.error.code for report in reports] == ["terms.quiet_hours", None]
    (mine,) = [found for found in run.contributions() if found.participant == "site-a"]
    assert (mine.state, mine.digest) == ("accepted", made[0])
    assert len(made) == 1
    assert end_of_quiet_hours(terms_of(allow={"quiet_hours": ["14:00-15:00"]}).allow.quiet_hours, clock[0]) is None


def test_the_homes_own_file_holds_without_being_named_and_a_broken_one_spends_no_code(
    api, service, toy_spec, toy_data, tmp_path
) -> None:
    run = service.submit(toy_spec(participants={"edge": 1}))
    code = run.create_code().code
    (tmp_path / "site.toml").write_text("[limits]\nstep = 1\n")
    with refused("terms.invalid"):
        Participant.enrol(api.url, code, "site-a", tmp_path)
    (tmp_path / "site.toml").write_text("[limits]\nsteps = 1\n")
    assert Participant.enrol(api.url, code, "site-a", tmp_path)._enforcement.terms.limits.steps == 1
