"""Shared settings: defaults under the home, environment, secrets from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferret_runtime.settings import FROM_FILE, ServiceSettings
from tests.refusals import refused


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, field in ServiceSettings.model_fields.items():
        monkeypatch.delenv(f"FERRET_{name}".upper(), raising=False)
        if FROM_FILE in field.metadata:
            monkeypatch.delenv(f"FERRET_{name}_FILE".upper(), raising=False)


def test_everything_lies_under_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FERRET_HOME", str(tmp_path))
    settings = ServiceSettings()
    assert settings.home == tmp_path
    assert settings.database_url == f"sqlite:///{tmp_path}/ferret.db"
    assert settings.storage_url == f"file://{tmp_path}/storage"


def test_home_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ServiceSettings().home == tmp_path / ".ferret"
    monkeypatch.chdir(tmp_path)
    assert ServiceSettings(home=Path("here")).home == tmp_path / "here"


def test_environment_wins_and_empty_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_BROKER_URL", "redis://broker/1")
    monkeypatch.setenv("FERRET_DATABASE_URL", "")
    settings = ServiceSettings()
    assert settings.broker_url == "redis://broker/1"
    assert settings.database_url.startswith("sqlite:///")


def test_secrets_come_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("postgresql://ferret:secret@db/ferret\n")
    monkeypatch.setenv("FERRET_DATABASE_URL_FILE", str(secret))
    settings = ServiceSettings()
    assert settings.database_url == "postgresql://ferret:secret@db/ferret"
    assert "secret" not in repr(settings)


def test_a_missing_secret_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FERRET_BROKER_URL_FILE", str(tmp_path / "nothing"))
    with refused("settings.invalid", "FERRET_BROKER_URL_FILE"):
        ServiceSettings()
