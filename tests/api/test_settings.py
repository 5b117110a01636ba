from __future__ import annotations

import pytest

from ferret_api.__main__ import main
from ferret_api.settings import ApiSettings


def test_every_setting_is_described() -> None:
    for name, field in ApiSettings.model_fields.items():
        assert field.description, f"FERRET_{name.upper()} has no description"
        assert field.description[0].isupper()


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_PORT", "1234")
    monkeypatch.setenv("FERRET_MAX_UPLOAD_BYTES", "4096")
    settings = ApiSettings()
    assert settings.port == 1234
    assert settings.max_upload_bytes == 4096
    assert settings.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "70000"),
        ("PORT", "http"),
        ("LEASE_SECONDS", "0"),
        ("LOG_LEVEL", "loud"),
        ("TRUSTED_PROXIES", "127.0.0.1,*"),
        ("TRUSTED_PROXIES", "10.0.0.5/24"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(f"FERRET_{name}", value)
    assert main([]) == 2
    told = capsys.readouterr().err
    assert f"FERRET_{name}" in told
    assert value in told


def test_a_wrong_secret_is_named_without_its_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FERRET_ADMIN_TOKEN", "tiny-secret")
    assert main([]) == 2
    told = capsys.readouterr().err
    assert "FERRET_ADMIN_TOKEN" in told
    assert "tiny-secret" not in told


def test_no_secret_shows_in_a_printed_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_ADMIN_TOKEN", "a-secret-admin-token")
    monkeypatch.setenv("FERRET_BROKER_URL", "redis://:a-secret-password@127.0.0.1/0")
    assert "a-secret" not in repr(ApiSettings())
