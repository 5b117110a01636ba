"""What a site keeps of its contributions' fate: from records alone, and however the server lies."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from ferret_core.ledger.record import LedgerRecord, Signature
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.signatures import Signed, new_key, public_key, sign
from ferret_sdk.participant import receipts
from ferret_sdk.participant.paths import ParticipantPaths
from ferret_sdk.participant.receipts import Receipts
from ferret_sdk.participant.spool import Upload
from tests import documents
from tests.refusals import refused

EXPERIMENT, PARTICIPANT, ASSIGNMENT = "exp_0123456789abcdef", "par_0123456789abcdef", "asg_0123456789abcdef"
SECRET, BASE, SENT, OTHER = new_key(), "ba" * 32, "c0" * 32, "c1" * 32


class Site:
    """A participant called clinic, whose server gives as its reason what it is asked about."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = ParticipantPaths(home, EXPERIMENT, PARTICIPANT).receipts
        self.member = documents.membership(key=SECRET)
        self.asked: list[int] = []
        self.receipts = self.again()

    def again(self) -> Receipts:
        """As after a restart."""
        self.receipts = Receipts(self.folder, self.member, self._reason)
        return self.receipts

    def _reason(self, number: int) -> str:
        self.asked.append(number)
        return f"attempt 1 at round {number} was undone"

    def outcome(self, digest: str = SENT) -> receipts.Outcome | None:
        return receipts.outcomes(self.home).get(digest)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def upload(number: int = 1, digest: str = SENT) -> Upload:
    return Upload(ASSIGNMENT, 1, number, "key", 1.0, None, digest, 0, "5e" * 64)


def record(number: int = 1, *names: str, secret: str | None = SECRET, **changes: Any) -> LedgerRecord:
    """One with contributions of these, of which clinic's is signed with ``secret``."""
    signatures = ()
    if secret is not None and "clinic" in names:
        signed = Signed(EXPERIMENT, number, "clinic", BASE, ASSIGNMENT, SENT)
        signatures = (Signature("clinic", public_key(secret), ASSIGNMENT, sign(secret, signed)),)
    members = {
        "version": 1,
        "experiment": EXPERIMENT,
        "spec": "5e" * 32,
        "round": number,
        "base_digest": BASE,
        "digest": "dd" * 32,
        "update": "0d" * 32,
        "contributions": tuple((name, SENT if name == "clinic" else OTHER) for name in sorted(names)),
        "previous": "",
        "clipped": (),
        "refused": (),
        "signatures": signatures,
        "halvings": 0,
    }
    return LedgerRecord.model_validate({**members, **changes})


def test_an_acknowledged_contribution_gets_its_receipt_with_the_record(site: Site) -> None:
    site.receipts.acknowledged(upload())
    assert site.outcome() == ("acknowledged", None, None)
    assert site.again().waiting
    site.receipts.follow(record(1, "clinic", "lab", "ward"))
    assert not site.receipts.waiting
    outcome = site.outcome()
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("in the round", None)
    assert outcome.receipt is not None
    assert receipts.read(outcome.receipt).hash == record(1, "clinic", "lab", "ward").hash
    assert not site.asked


def test_the_records_alone_are_enough_after_a_restart(site: Site) -> None:
    """The answer was lost, or everything but the membership: who follows the ledger again has its receipts again."""
    for number in (1, 2, 3):
        site.receipts.follow(record(number, "clinic", "lab") if number != 2 else record(number, "lab"))
    assert sorted(path.name for path in site.folder.glob("*")) == ["round-1.json", "round-3.json"]
    written = (site.folder / "round-1.json").stat().st_mtime_ns
    site.again().follow(record(1, "clinic", "lab"))
    assert (site.folder / "round-1.json").stat().st_mtime_ns == written


def test_what_was_refused_or_shortened_is_told(site: Site) -> None:
    site.receipts.acknowledged(upload())
    own = record(1, "clinic", "lab")
    site.receipts.follow(own.model_copy(update={"clipped": (("clinic", 0.25),)}))
    assert "0.25" in str(site.outcome())
    refused = {"contributions": (("lab", OTHER),), "refused": (("clinic", SENT, "far too long"),)}
    site.receipts.follow(own.model_copy(update=refused))
    outcome = site.outcome()
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("refused", "far too long")


def test_what_was_acknowledged_and_left_out_is_said_plainly_and_once(site: Site, caplog: Any) -> None:
    site.receipts.acknowledged(upload(2))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            site.receipts.follow(record(1, "lab"))
            site.receipts.follow(record(2, "lab"))
            site.again()
    assert site.asked == [2]
    (told,) = caplog.messages
    assert "round 2 was committed without this site's contribution" in told
    assert "attempt 1 at round 2 was undone" in told
    assert site.outcome() == ("left out", "attempt 1 at round 2 was undone", None)
    assert not site.receipts.waiting
    site.receipts.acknowledged(upload(2))  # sent again
    assert not site.receipts.waiting


def test_another_attempt_at_the_round_counts(site: Site) -> None:
    site.receipts.acknowledged(upload(1, OTHER))
    site.receipts.acknowledged(upload(1))
    site.receipts.follow(record(1, "clinic"))
    assert site.outcome(OTHER) is None
    assert site.outcome() is not None
    assert not site.asked


@pytest.mark.parametrize("secret", [None, new_key()], ids=["unsigned", "signed by another key"])
def test_a_contribution_that_the_site_did_not_sign_breaks_the_ledger(site: Site, secret: str | None) -> None:
    with refused("ledger.broken", "not signed with this site's key"):
        site.receipts.follow(record(1, "clinic", "lab", secret=secret))
    assert site.outcome() is None


def test_a_full_disk_stops_nothing_and_the_receipt_comes_later(site: Site, monkeypatch: Any, caplog: Any) -> None:
    def full(*arguments: Any) -> None:
        raise FerretError("storage.full", "no room")

    with monkeypatch.context() as patch:
        patch.setattr(receipts, "write_durably", full)
        site.receipts.acknowledged(upload())
        site.receipts.follow(record(1, "clinic"))
    assert "no room" in caplog.text
    assert site.receipts.waiting
    site.receipts.follow(record(1, "clinic"))
    assert not site.receipts.waiting
    assert site.outcome() is not None


def test_damaged_files_are_told(site: Site, caplog: Any) -> None:
    site.receipts.acknowledged(upload())
    (site.folder / receipts.NOTES).write_text("{")
    assert not site.again().waiting
    assert "cannot be read" in caplog.text
    site.receipts.follow(record(1, "clinic"))
    path = site.folder / "round-1.json"
    path.write_text(path.read_text().replace(SENT, OTHER))
    with refused("receipt.invalid"):
        receipts.outcomes(site.home)
    for content in (None, "{}"):
        path.unlink(missing_ok=True)
        if content:
            path.write_text(content)
        with refused("receipt.invalid", "round-1.json"):
            receipts.read(path)
