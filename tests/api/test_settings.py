from __future__ import annotations

from pathlib import Path

import pytest

from ferret_api.__main__ import main
from ferret_api.oidc.provider import OidcSettings
from ferret_api.settings import ApiSettings
from ferret_core.protocol.roles import Role


def test_every_setting_is_described() -> None:
    for name, field in ApiSettings.model_fields.items():
        assert field.description, f"FERRET_{name.upper()} has no description"
        assert field.description[0].isupper()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "70000"),
        ("PORT", "http"),
        ("LEASE_SECONDS", "0"),
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


def test_a_provider_is_set_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret from a file\n")
    for name in ("SMTP_PASSWORD", "ADMIN_TOKEN"):
        monkeypatch.setenv(f"FERRET_{name}_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("FERRET_OIDC_ISSUER", "https://login.example.org/realms/hospital")
    monkeypatch.setenv("FERRET_OIDC_CLIENT_ID", "ferret")
    monkeypatch.setenv("FERRET_OIDC_CLIENT_SECRET_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("FERRET_OIDC_ROLES", '{"cn=admins,dc=hospital": "admin"}')
    found = OidcSettings.of(ApiSettings())
    assert found is not None
    assert (found.name, found.client_secret) == ("login.example.org", "a secret from a file")
    assert (found.roles, found.default_role) == ({"cn=admins,dc=hospital": Role.ADMIN}, None)
    assert ApiSettings().smtp_password == ApiSettings().admin_token == "a secret from a file"
    assert "from a file" not in repr(ApiSettings())


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"ISSUER": "https://login.example.org"}, "FERRET_OIDC_CLIENT_ID"),
        ({"CLIENT_ID": "ferret"}, "FERRET_OIDC_ISSUER"),
        ({"ISSUER": "http://login.example.org", "CLIENT_ID": "ferret"}, "FERRET_OIDC_ISSUER"),
        ({"ROLES": "ferret-admins=admin"}, "FERRET_OIDC_ROLES: is not JSON"),
        ({"ROLES": '{"ferret-admins": "root"}'}, "FERRET_OIDC_ROLES"),
        ({"DEFAULT_ROLE": "everybody"}, "FERRET_OIDC_DEFAULT_ROLE"),
        ({"SCOPES": "profile"}, "FERRET_OIDC_SCOPES"),
    ],
    ids=str,
)
@pytest.mark.usefixtures("own_logging")
def test_a_provider_that_is_set_wrong_keeps_the_service_from_starting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: dict[str, str], named: str, home: Path
) -> None:
    monkeypatch.setenv("FERRET_HOME", str(home))
    monkeypatch.setenv("FERRET_PORT", "0")
    for name, value in given.items():
        monkeypatch.setenv(f"FERRET_OIDC_{name}", value)
    assert main([]) == 2
    assert named in capsys.readouterr().err
