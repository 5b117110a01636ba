"""The service of the API's tests, for those who attack it."""

from __future__ import annotations

import os

import pytest

from ferret_sdk.http import retry
from tests.api.conftest import either_site as either_site
from tests.api.conftest import forged as forged
from tests.api.conftest import forger as forger
from tests.api.conftest import home as home
from tests.api.conftest import live as live
from tests.api.conftest import make_settings as make_settings
from tests.api.conftest import make_shared_settings as make_shared_settings
from tests.api.conftest import migrated_postgresql as migrated_postgresql
from tests.api.conftest import serve as serve
from tests.api.conftest import settings as settings
from tests.api.conftest import shared_site as shared_site
from tests.api.conftest import site as site


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's requests are repeated at once."""
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(retry, "LONGEST_WAIT", 0.002)


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """None in the environment."""
    for name in list(os.environ):
        if name.startswith("FERRET_"):
            monkeypatch.delenv(name)
