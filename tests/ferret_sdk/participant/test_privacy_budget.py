"""A site's privacy budget: ε is right, spent before anything can be sent, and never exceeded."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant

from ferret_core.privacy import accounting
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Contribution
from ferret_core.training.privacy import Gaussian, ReleasePolicy
from ferret_sdk import Participant
from ferret_sdk.http.transport import Answer, Transport
from ferret_sdk.participant import local_training
from ferret_sdk.participant.privacy_budget import Budget, PrivacySpending, ReleaseCount, gaussian_epsilon
from ferret_sdk.participant.site_terms import Privacy, Terms
from ferret_sdk.participant.spool import Spool
from ferret_sdk.service.progress import RoundReport
from tests.refusals import refused

pytestmark = pytest.mark.timeout(90)

# So short that the noise spoils no tiny model.
PRIVACY = {"clip": 1e-5, "noise_multiplier": 8.0, "epsilon": 2.0, "delta": 1e-5}
FIXED = {"allocation": "fixed"}


def budget(home: Path, **changes: float) -> Budget:
    return Budget(home, Privacy.model_validate(PRIVACY | changes))


def made(site: Budget) -> ReleasePolicy:
    """The discretion of a contribution that was made."""
    discretion = site.discretion()
    assert discretion.protect is not None
    discretion.protect(np.ones(8, np.float32))
    return discretion


@pytest.mark.parametrize("released", [[(8.0, 1)], [(8.0, 20)], [(4.0, 3), (16.0, 10)]])
@pytest.mark.heavy
def test_epsilon_is_that_of_another_accountant(released: list[tuple[float, int]]) -> None:
    """One composes privacy loss distributions, ours Gaussian mechanisms in closed form. The sensitivity is twice the
    clipping norm, which halves the noise multiplier."""
    accountant = PLDAccountant()
    for multiplier, count in released:
        accountant.compose(dp_accounting.GaussianDpEvent(multiplier / 2), count)
    spending = PrivacySpending(released=tuple(ReleaseCount(noise_multiplier=z, count=n) for z, n in released))
    assert gaussian_epsilon(spending.mu, 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-4)


def test_the_sensitivity_is_twice_the_clipping_norm_and_reached() -> None:
    clip = 0.5
    vectors = [sign * np.full(100, 7.0, np.float32) for sign in (1, -1)]
    clipped = [Gaussian(clip, 0.0)(vector) for vector in vectors]
    assert np.linalg.norm(clipped[0] - clipped[1]) == pytest.approx(2 * clip)


def test_the_documented_table_is_right() -> None:
    text = (Path(__file__).parents[3] / "docs/sites/site-terms.md").read_text()
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(rows) == 4
    for multiplier, *shown in rows:
        for count, epsilon in zip((1, 10, 50), shown, strict=True):
            assert f"{gaussian_epsilon(2 * math.sqrt(count) / int(multiplier), 1e-6):.2f}" == epsilon


def test_contributions_are_counted_to_the_last_that_fits_and_over_restarts(tmp_path: Path) -> None:
    fits = budget(tmp_path).left()
    assert fits > 1
    for left in range(fits, 0, -1):
        site = budget(tmp_path)
        assert site.left() == left
        site.require()
        site.spend()
    site = budget(tmp_path)
    assert site.epsilon(site.spent()) <= PRIVACY["epsilon"]
    for use in (site.require, site.spend):
        with pytest.raises(FerretError) as raised:
            use()
        assert (raised.value.code, raised.value.errors[0].field) == ("terms.limit_reached", "epsilon")
    assert site.spent() == PrivacySpending(released=(ReleaseCount(noise_multiplier=8.0, count=fits),))
    assert budget(tmp_path, epsilon=100.0).left() > 0
    assert budget(tmp_path, epsilon=0.01).left() == 0
    assert budget(tmp_path, noise_multiplier=1.0).left() == 0, "what was spent under other terms counts"


def test_what_no_vector_was_noised_for_is_refused(tmp_path: Path) -> None:
    site = budget(tmp_path)
    with refused("terms.refused"):
        site.require_noised(site.discretion())


def test_a_damaged_record_begins_nothing_anew(tmp_path: Path) -> None:
    site = budget(tmp_path)
    site.spend()
    (tmp_path / "participants/privacy.json").write_text("{}}")
    with refused("terms.invalid"):
        site.require()


@pytest.fixture
def join(api, service, toy_spec, tmp_path):
    """Joins a new experiment as one of two participants, under a privacy budget."""

    def make(options: dict[str, Any] | None = None, rounds: int = 5, **privacy: float):
        participants = {"simulated": 1, "edge": 1}
        run = service.submit(
            toy_spec("ferret", participants=participants, rounds=rounds, options=FIXED | (options or {}))
        )
        terms = Terms.model_validate({"privacy": PRIVACY | privacy})
        return run, Participant.enrol(api.url, run.create_code().code, "site-a", tmp_path, terms=terms)

    return make


def test_under_a_budget_nothing_but_the_noised_vector_leaves(api, worker, join, toy_data, monkeypatch) -> None:
    request = Transport.request
    sent: list[tuple[bytes, dict[str, str]]] = []

    def watched(transport: Transport, method: str, path: str, **options: Any) -> Answer:
        if method == "PUT":
            sent.append((options["content"], options["headers"]))
        return request(transport, method, path, **options)

    monkeypatch.setattr(Transport, "request", watched)
    run, site = join()
    fits = site.budget.left()
    assert 0 < fits < 5
    reports: list[RoundReport] = []
    with refused("terms.limit_reached"):
        site.run(toy_data[0], on_round=reports.append)
    assert [report.error for report in reports] == [None] * fits
    assert all(report.loss is None for report in reports)
    for blob, headers in sent:
        meta = Contribution.decode(blob).meta
        assert (meta.examples, meta.metrics, headers["Ferret-Seconds"]) == (1, {}, "0.000")
    mine = [found for found in run.contributions() if found.participant == "site-a"]
    assert [found.state for found in mine] == ["accepted"] * fits + ["rejected"]
    assert mine[-1].error.code == "terms.limit_reached"
    assert site.budget.left() == 0


class Cut(BaseException):
    """The process ends here."""


def cut_at(point: str) -> Callable[[str], None]:
    def failpoint(name: str) -> None:
        if name == point:
            raise Cut

    return failpoint


def test_the_budget_is_spent_before_the_contribution_is_kept_to_be_sent(
    api, worker, join, toy_data, monkeypatch, tmp_path
) -> None:
    _, site = join()
    monkeypatch.setattr(local_training, "failpoint", cut_at("participant.trained"))
    with pytest.raises(Cut):
        site.run(toy_data[0])
    assert site.budget.spent().released == (ReleaseCount(noise_multiplier=8.0, count=1),)
    assert not list(tmp_path.glob("participants/*/*-upload/upload.json"))


def test_a_dry_run_spends_nothing_and_is_noised_too(api, worker, join, toy_data) -> None:
    run, site = join()
    while run.refresh().experiment.digest is None:
        pass
    first, second = site.preview(toy_data[0]), site.preview(toy_data[0])
    assert (first.digest, second.digest) == (None, None), "noise makes another one each time"
    assert first.norm == second.norm
    assert first.norm
    assert site.budget.spent() == PrivacySpending()


def test_what_was_made_before_there_was_a_budget_is_not_sent(
    api, worker, join, toy_data, monkeypatch, tmp_path
) -> None:
    run, site = join(rounds=1)
    with monkeypatch.context() as patch:
        patch.setattr(local_training, "failpoint", cut_at("participant.spooled"))
        with pytest.raises(Cut):
            Participant(site.member, tmp_path, terms=Terms()).run(toy_data[0])
    (folder,) = tmp_path.glob("participants/*/*-upload")
    unprotected = Spool(folder).waiting()
    assert unprotected is not None
    assert site.run(toy_data[0]) == "completed"
    assert unprotected.digest not in [found.digest for found in run.contributions()]


def test_a_failure_has_one_code_costs_a_contribution_and_ends_the_participation(api, worker, join, toy_data) -> None:
    run, site = join({"local": {"optimizer": "adam", "learning_rate": 1e30, "steps": 2}}, rounds=1)
    with refused("participant.failed", "the loss is"):
        site.run(toy_data[0])
    (mine, *_) = [found for found in run.contributions() if found.participant == "site-a"]
    assert mine.error.code == "participant.failed"
    assert mine.error.detail == "The participant could not finish the round"
    assert site.budget.spent().released[0].count == 1, "a failure costs as much as a contribution"


def test_without_the_package_that_computes_it_no_code_is_spent(api, service, toy_spec, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(accounting, "find_spec", lambda name: None)
    with refused("dependency.missing", "[train,privacy]"):
        Participant.enrol(api.url, "a-code", "site-a", tmp_path, terms=Terms.model_validate({"privacy": PRIVACY}))
