"""What is kept of an enrolment."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_sdk.participant import membership
from ferret_sdk.service.server_address import split
from tests import documents

URL = "https://ferret.test"


def test_a_membership_that_others_can_read_is_closed_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    member = documents.membership(URL, code=digest_bytes(b"code"))
    path = membership.save(tmp_path, member)
    assert membership.find(tmp_path, URL, "code") == member
    assert caplog.messages == []
    path.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        assert membership.find(tmp_path, URL, "code") == member
    assert path.stat().st_mode & 0o777 == 0o600
    assert str(path) in caplog.text
    assert "a-secret-token" not in caplog.text


def test_one_server_cannot_repeat_an_exchange_at_another() -> None:
    keys = [membership.enrolment_key(url, "code", "secret") for url in (URL, "https://other.test")]
    assert keys[0] != keys[1]


def test_the_same_server_spelt_otherwise_is_the_same(tmp_path: Path) -> None:
    """A code works once: it must not be spent again."""
    member = documents.membership("https://FERRET.test:443", code=digest_bytes(b"code"))
    membership.save(tmp_path, member)
    assert membership.find(tmp_path, split("https://ferret.TEST/").url, "code") == member
    assert membership.find(tmp_path, "https://ferret.test:8443", "code") is None
