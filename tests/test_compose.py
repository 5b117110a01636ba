"""docker-compose.yml against the compose specification's schema, the settings and the command line."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ferret_api.oidc.provider import OidcSettings
from ferret_api.settings import ApiSettings
from ferret_cli.main import app
from ferret_runtime.settings import FROM_FILE
from ferret_worker.settings import WorkerSettings
from scripts import lock, secrets

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OBSERVE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.observe.yml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OURS = {name: service for name, service in COMPOSE["services"].items() if "build" in service}
FIELDS = {**ApiSettings.model_fields, **WorkerSettings.model_fields}
SETTINGS = {f"FERRET_{name.upper()}" for name in FIELDS}
SIGN_IN = {f"FERRET_{name.upper()}" for name in FIELDS if name.startswith("oidc_")}
FROM_FILES = {f"FERRET_{name.upper()}_FILE" for name, field in FIELDS.items() if FROM_FILE in field.metadata}


def interpolated(value: str, variables: dict[str, str]) -> str:
    """The value with ``${NAME:-DEFAULT}`` and ``${NAME:+INSTEAD}`` as compose fills them in."""

    def filled(found: re.Match[str]) -> str:
        name, how, word = found.groups()
        given = variables.get(name, "")
        return (given or word) if how == ":-" else (given and word)

    return re.sub(r"\$\{(\w+)(:[-+])(.*?)\}", filled, value)


@pytest.fixture
def api_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[dict[str, str]], ApiSettings]:
    """The settings of the service ``api`` where ``.env`` sets these variables, by the environment that it then has. Its
    secrets lie in ``tmp_path``."""

    def read(variables: dict[str, str]) -> ApiSettings:
        for name, text in secrets.made().items():
            (tmp_path / name).write_text(text)
        for name, value in OURS["api"]["environment"].items():
            monkeypatch.setenv(name, interpolated(value, variables).replace("/run/secrets", str(tmp_path)))
        return ApiSettings.read()

    return read


@pytest.mark.heavy
@pytest.mark.parametrize(
    "file",
    ["docker-compose.yml", "docker-compose.s3.yml", "docker-compose.observe.yml"],
)
def test_it_follows_the_compose_specification(file: str) -> None:
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        file,
    ]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    assert set(OURS[name]["environment"]) <= SETTINGS | FROM_FILES


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_one_of_ours(name: str) -> None:
    import typer.main

    commands = typer.main.get_command(app).commands
    assert OURS[name]["command"][0] in commands


def test_there_is_a_process_for_every_part() -> None:
    commands = [tuple(service["command"]) for service in OURS.values()]
    workers = {("worker", queue) for queue in ("train", "aggregate", "playground")}
    assert {("api",), ("migrate",), *workers} == set(commands)
    assert {"caddy", "postgres", "redis"} < set(COMPOSE["services"])


def test_ports_and_health_checks_agree_with_the_settings() -> None:
    api = OURS["api"]
    port = int(api["environment"]["FERRET_PORT"])
    assert port == ApiSettings.model_fields["port"].default
    assert [entry.rsplit(":", 2)[-2:] for entry in api["ports"]] == [[str(port), str(port)]]
    assert f":{port}/readyz" in api["healthcheck"]["test"][-1]


def test_nothing_starts_before_what_it_needs() -> None:
    for name, service in COMPOSE["services"].items():
        for needed, how in service.get("depends_on", {}).items():
            condition = how["condition"]
            assert needed in COMPOSE["services"], f"{name} needs {needed}"
            if condition == "service_healthy":
                assert "healthcheck" in COMPOSE["services"][needed]
            else:
                assert (condition, COMPOSE["services"][needed]["restart"]) == ("service_completed_successfully", "no")


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_every_container_is_confined(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "caddy" else [])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    limits = service["deploy"]["resources"]["limits"]
    assert {"memory", "pids"} <= set(limits)
    assert any(mount.startswith("/tmp:") for mount in service["tmpfs"])
    assert "user" in service or "build" in service, "the image of Ferret has a user of its own"
    assert re.search(r"^USER (?!root)", DOCKERFILE, re.MULTILINE)


@pytest.mark.parametrize("name", sorted({*COMPOSE["services"]} - {"migrate"}))
def test_every_service_that_stays_has_a_health_check(name: str) -> None:
    assert COMPOSE["services"][name]["healthcheck"]["test"]


def test_a_worker_is_checked_by_the_file_that_it_touches() -> None:
    for name, service in OURS.items():
        if service["command"][0] == "worker":
            assert service["environment"]["FERRET_HEARTBEAT"] in service["healthcheck"]["test"][-1], name


def test_only_caddy_is_reached_from_outside_and_the_api_from_this_machine() -> None:
    ports = {name: service["ports"] for name, service in COMPOSE["services"].items() if "ports" in service}
    assert ports["caddy"] == ["80:80", "443:443"]
    assert all(port.startswith("127.0.0.1:") for port in ports["api"])
    assert ports.keys() == {"api", "caddy"}
    assert COMPOSE["networks"]["backend"] == {"internal": True}
    assert all(COMPOSE["services"][name]["networks"] == ["backend"] for name in ("postgres", "redis"))


def test_the_api_believes_nobody_but_caddy_who_asks() -> None:
    services = COMPOSE["services"]
    (subnet,) = COMPOSE["networks"]["proxy"]["ipam"]["config"]
    assert services["api"]["environment"]["FERRET_TRUSTED_PROXIES"] == subnet["subnet"]
    assert COMPOSE["networks"]["proxy"]["internal"]
    assert {name for name in services if "proxy" in services[name]["networks"]} == {"api", "caddy"}
    shared = {*services["api"]["networks"]} & {*services["caddy"]["networks"]}
    assert shared == {"proxy"}, "Caddy reaches the API by no other way"
    usual = re.sub(r"\$\{\w+:-(.*)\}", r"\1", subnet["subnet"])
    assert ApiSettings(trusted_proxies=usual).trusted_proxies == usual


def test_caddy_serves_the_api_under_its_address_with_the_committed_file() -> None:
    api, caddy = COMPOSE["services"]["api"], COMPOSE["services"]["caddy"]
    asked = set(re.findall(r"\{\$(\w+)", (ROOT / "Caddyfile").read_text()))
    assert asked == caddy["environment"].keys()
    assert caddy["environment"]["FERRET_PUBLIC_URL"] == api["environment"]["FERRET_PUBLIC_URL"]
    assert caddy["environment"]["FERRET_API"] == f"api:{api['environment']['FERRET_PORT']}"
    ((name, target),) = [(config["source"], config["target"]) for config in caddy["configs"]]
    assert COMPOSE["configs"] == {name: {"file": "./Caddyfile"}}
    assert target == "/etc/caddy/Caddyfile", "where the image's command looks"


def test_every_setting_of_sign_in_with_a_provider_is_passed_on_to_the_api_and_its_secret_as_a_file() -> None:
    passed = OURS["api"]["environment"]
    assert {name for name in SIGN_IN if name in passed or f"{name}_FILE" in passed} == SIGN_IN
    assert not FROM_FILES & {f"{name}_FILE" for name in passed}, "no secret stands in an environment"
    others = [service["environment"] for name, service in OURS.items() if name != "api"]
    assert not any("OIDC" in name for environment in others for name in environment)


def test_without_a_provider_compose_sets_none(api_settings: Callable[[dict[str, str]], ApiSettings]) -> None:
    settings = api_settings({})
    assert OidcSettings.of(settings) is None
    unset = {name: field.get_default() for name, field in ApiSettings.model_fields.items() if name.startswith("oidc_")}
    assert {name: getattr(settings, name) for name in unset} == unset
    assert interpolated(COMPOSE["secrets"]["oidc_client_secret"]["file"], {}) == "/dev/null", "there on every machine"


def test_the_guide_to_sign_in_sets_a_provider(
    api_settings: Callable[[dict[str, str]], ApiSettings], tmp_path: Path
) -> None:
    guide = (ROOT / "docs/operators/people.md").read_text()
    (env,) = re.findall(r'```bash title="\.env"\n(.*?)```', guide, re.DOTALL)
    variables = {name: value.strip("'") for name, _, value in (line.partition("=") for line in env.splitlines())}
    (tmp_path / "oidc_client_secret").write_text("from the provider\n")
    found = OidcSettings.of(api_settings(variables))
    assert found is not None
    assert (found.issuer, found.client_id) == ("https://login.example.org/realms/hospital", "ferret")
    assert (found.client_secret, found.roles["ferret-admins"]) == ("from the provider", "admin")
    assert interpolated(COMPOSE["secrets"]["oidc_client_secret"]["file"], variables) == "./secrets/oidc_client_secret"


def test_images_of_others_have_an_exact_version_and_may_have_a_digest() -> None:
    for name in {*COMPOSE["services"]} - {*OURS}:
        assert re.fullmatch(
            r"\$\{FERRET_\w+_IMAGE:-\w+:\d+\.\d+(\.\d+)?(@sha256:[0-9a-f]{64})?\}", COMPOSE["services"][name]["image"]
        )


def test_redis_and_postgresql_ask_for_the_passwords_that_ferret_knows(tmp_path: Path) -> None:
    assert secrets.main(tmp_path / "secrets") == 0
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    given = {"oidc_client_secret", "smtp_password"}
    theirs = {name: secret["file"] for name, secret in COMPOSE["secrets"].items() if name not in given}
    assert theirs == {name: f"./secrets/{name}" for name in made}, "those of others are made by others"
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    assert f":{made['postgres_password']}@postgres:5432/" in made["database_url"]
    assert f":{made['redis_password']}@redis:6379/" in made["broker_url"]
    assert secrets.main(tmp_path / "secrets") == 1, "the databases know the first passwords"
    assert {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()} == made


def test_every_secret_that_a_service_reads_is_mounted_there() -> None:
    for name, service in COMPOSE["services"].items():
        read = set(re.findall(r"/run/secrets/(\w+)", str(service)))
        assert read == set(service.get("secrets", ())), name


def test_no_secret_stands_in_the_file_and_every_volume_is_declared() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert re.findall(r"(?:PASSWORD|TOKEN|SECRET): ", text) == []
    assert "secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    mounted = {volume.split(":")[0] for service in COMPOSE["services"].values() for volume in service["volumes"]}
    assert mounted == set(COMPOSE["volumes"])


def test_the_image_copies_every_package_it_installs() -> None:
    copied = set(re.findall(r"^COPY (\w+) \./", DOCKERFILE, re.MULTILINE))
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} <= copied


def test_the_image_installs_from_the_lock_and_copies_all_that_this_reads() -> None:
    installs = re.findall(r"^RUN (?:\w+=\w+ )*(.*(?:pip install|scripts\.setup).*)$", DOCKERFILE, re.MULTILINE)
    assert installs == ['python -m scripts.setup --service --venv /opt/ferret --torch "$TORCH"']
    copied = {name for line in re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()}
    for name in [lock.RUNTIME, *lock.PROJECTS, "README.md", "LICENSE"]:
        assert copied & {name, *map(str, Path(name).parents)}, name


def test_a_bucket_is_given_to_every_process_of_ours() -> None:
    added: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.s3.yml").read_text())
    assert added["services"].keys() == OURS.keys()
    for service in added["services"].values():
        variables = service["environment"].keys() - {"AWS_SHARED_CREDENTIALS_FILE"}
        assert variables <= SETTINGS
        assert service["secrets"] == list(added["secrets"])
    assert "boto3" in {pin.name for pin in lock.pins(lock.RUNTIME)}, "the image has the library"


def test_traces_are_sent_by_every_process_of_ours_that_stays() -> None:
    senders = {name: service for name, service in OBSERVE["services"].items() if name in COMPOSE["services"]}
    assert senders.keys() == OURS.keys() - {"migrate"}
    for service in senders.values():
        assert service == {"environment": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://jaeger:4318"}}
        assert "jaeger" in OBSERVE["services"]
    assert "opentelemetry-exporter-otlp-proto-http" in {pin.name for pin in lock.pins(lock.RUNTIME)}


@pytest.mark.parametrize("name", sorted({*OBSERVE["services"]} - {*COMPOSE["services"]}))
def test_what_observes_is_confined_too_and_reached_from_this_machine_alone(name: str) -> None:
    service = OBSERVE["services"][name]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"memory", "pids"} <= set(service["deploy"]["resources"]["limits"])
    assert service["healthcheck"]["test"]
    assert service["user"] not in {"root", "0"}
    assert re.fullmatch(r"\$\{FERRET_\w+_IMAGE:-[\w/]+:v?\d+\.\d+\.\d+\}", service["image"])
    assert [port for port in service.get("ports", ()) if not port.startswith("127.0.0.1:")] == []
    assert set(re.findall(r"/run/secrets/(\w+)", str(service))) <= set(service.get("secrets", ()))
    assert {mount.split(":")[0] for mount in service.get("volumes", ())} <= OBSERVE["volumes"].keys()
    assert {config["source"] for config in service.get("configs", ())} <= OBSERVE["configs"].keys()


def test_what_observes_is_given_files_that_are_there() -> None:
    files = {config["file"] for config in OBSERVE["configs"].values()}
    assert [file for file in files if not (ROOT / file).exists()] == []
    targets = {config["source"]: config["target"] for config in OBSERVE["services"]["grafana"]["configs"]}
    (provider,) = yaml.safe_load((ROOT / "deploy/grafana/dashboards.yml").read_text())["providers"]
    assert targets["grafana-ferret"].startswith(provider["options"]["path"])
    sources = yaml.safe_load((ROOT / "deploy/grafana/datasources.yml").read_text())["datasources"]
    assert {re.split("//|:", source["url"])[2] for source in sources} <= OBSERVE["services"].keys()
    guide = (ROOT / "docs/operators/monitoring.md").read_text()
    assert all(f"secrets/{name}" in guide for name in OBSERVE["secrets"])
